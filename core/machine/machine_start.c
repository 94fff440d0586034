/* SPDX-License-Identifier: MIT */
/*
 * machine_start.c - where a machine's stamps begin, and what all get added where that is below zero.
 */
#include <tandem/machines.h>

#define SECOND_NS   UINT64_C(1000000000)
#define BIAS_MAX_NS (UINT64_C(1) << 62)

enum tdm_status tdm_machine_find_start(
	const struct tdm_machine *machine, struct tdm_machine_start *start, struct tdm_error *err)
{
	const struct tdm_trace_info *const info = tdm_trace_get_info(machine->trace);

	*start = (struct tdm_machine_start){ 0 };
	for (size_t i = 0; i < info->stream_count; i++) {
		struct tdm_error fault = { 0 };
		struct tdm_reader *const reader = tdm_reader_create(machine->trace, i, &fault);
		struct tdm_batch batch = { 0 };
		enum tdm_status status = reader ? TDM_OK : fault.status;

		while (reader && status == TDM_OK && batch.count == 0) {
			status = tdm_reader_next_batch(reader, &batch, &fault);
		}
		if (status == TDM_OK && batch.count) {
			const int64_t time_ns = (int64_t)batch.slots[0].time_ns;

			start->first_ns = !start->has_records || time_ns < start->first_ns
						  ? time_ns
						  : start->first_ns;
			start->has_records = true;
		}
		tdm_reader_destroy(reader);
		if (status == TDM_ERR_NOMEM) {
			*err = fault;
			return status;
		}
	}
	return TDM_OK;
}

uint64_t tdm_machine_bias_ns(
	const struct tdm_machine_start *start, int64_t least_ns, uint64_t bias_ns)
{
	if (start->has_records && start->first_ns < least_ns) {
		const uint64_t wanted = (uint64_t)least_ns - (uint64_t)start->first_ns;

		bias_ns = wanted > bias_ns && wanted <= BIAS_MAX_NS ? wanted : bias_ns;
	}
	return bias_ns + (SECOND_NS - bias_ns % SECOND_NS) % SECOND_NS;
}
