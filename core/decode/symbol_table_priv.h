/* SPDX-License-Identifier: MIT */
/*
 * symbol_table_priv.h - names by address: /proc/kallsyms and printk_formats.
 */
#ifndef TANDEM_SYMBOL_TABLE_PRIV_H
#define TANDEM_SYMBOL_TABLE_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <tandem/buffer.h>

struct symbol_table;

/** From lines "ADDR TYPE NAME[\t[MODULE]]". Takes the bytes of @p text. @return NULL without memory. */
struct symbol_table *symbol_table_from_kallsyms(struct tdm_buffer *text);

/** From lines "0xADDR : "TEXT"", C escapes resolved. Takes the bytes of @p text. @return NULL without memory. */
struct symbol_table *symbol_table_from_printk(struct tdm_buffer *text);
void symbol_table_destroy(struct symbol_table *table);

/** The name at the highest address that is not above @p address, or NULL. */
const char *symbol_table_floor(
	const struct symbol_table *table, uint64_t address, uint64_t *distance);

/** The name at exactly @p address, or NULL. */
const char *symbol_table_exact(const struct symbol_table *table, uint64_t address);

#endif
