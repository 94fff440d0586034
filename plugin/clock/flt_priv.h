/* SPDX-License-Identifier: MIT */
/*
 * flt_priv.h - filter.tandem.clock: what its component and its message iterators share.
 */
#ifndef TANDEM_FLT_PRIV_H
#define TANDEM_FLT_PRIV_H

#include "clock/flt_clock.h"
#include "clock/flt_link.h"
#include "ir/ir_mirror.h"
#include "report.h"

enum flt_on_missing {
	FLT_MISSING_FAIL, /* no correction: the graph ends */
	FLT_MISSING_PASS, /* ... stamps pass uncorrected, said once */
	FLT_MISSING_WAIT, /* ... wait for the service as long as it takes */
};

struct flt_component {
	bt_self_component *self;
	struct report report;
	uint64_t mip;
	struct flt_mapping mapping;
	struct ir_mirror *mirror;
	struct flt_link *link; /* to a corrections service; NULL for a file */
	char *corrections;     /* as the user gave it; NULL = none */
	char *guest;           /* NULL = not named */
	enum flt_on_missing on_missing;
	uint64_t max_wait_ns;
	uint64_t
		began_ns; /* when the component came to be: waiting for the first knot counts from here */
	uint64_t progress_ns; /* when the service last said something new */
	bool said_gone, said_bad_line;
	/* Stamps that were held back so that time does not go back. */
	uint64_t held_count, held_most_ns;
};

/** Takes in what the service has sent; says once when it goes and comes. False with @p err where it must end. */
bool flt_component_poll(struct flt_component *component, struct tdm_error *err);

/** True while a reading must wait for its correction; never for a file. */
bool flt_component_holds(struct flt_component *component, uint64_t reading);

/* Methods, registered in tandem.c. */

bt_component_class_get_supported_mip_versions_method_status flt_supported_mip(
	bt_self_component_class_filter *self_class, const bt_value *params, void *data,
	bt_logging_level level, bt_integer_range_set_unsigned *versions);
bt_component_class_initialize_method_status flt_initialize(bt_self_component_filter *self,
	bt_self_component_filter_configuration *config, const bt_value *params, void *data);
void flt_finalize(bt_self_component_filter *self);
bt_message_iterator_class_initialize_method_status flt_iterator_initialize(
	bt_self_message_iterator *self, bt_self_message_iterator_configuration *config,
	bt_self_component_port_output *port);
void flt_iterator_finalize(bt_self_message_iterator *self);
bt_message_iterator_class_next_method_status flt_iterator_next(bt_self_message_iterator *self,
	bt_message_array_const messages, uint64_t capacity, uint64_t *count);
bt_message_iterator_class_can_seek_beginning_method_status flt_iterator_can_seek(
	bt_self_message_iterator *self, bt_bool *can_seek);
bt_message_iterator_class_seek_beginning_method_status flt_iterator_seek(
	bt_self_message_iterator *self);

#endif
