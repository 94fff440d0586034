/* SPDX-License-Identifier: MIT */
/*
 * tdm_cmocka.h - cmocka.h with what it needs before it, in the order it needs.
 */
#ifndef TDM_CMOCKA_H
#define TDM_CMOCKA_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
