/* SPDX-License-Identifier: MIT */
/*
 * live_estimate IN.exchanges OUT.corrections - what a corrections service would have sent while the log was made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/estimate.h>
#include <tandem/text.h>

/* A pause that ends a burst. */
#define BURST_GAP_NS UINT64_C(20000000)

/* Lines of a log may stand in any order; a session has them in its own. */
static int compare_records(const void *a, const void *b)
{
	const struct tdm_exchange_record *left = a;
	const struct tdm_exchange_record *right = b;

	if (left->seq != right->seq) {
		return left->seq < right->seq ? -1 : 1;
	}
	return (left->trace.host_sent > right->trace.host_sent) -
	       (left->trace.host_sent < right->trace.host_sent);
}

int main(int argc, char **argv)
{
	struct tdm_exchange_log *log = NULL;
	struct tdm_error err = { .text = "wanted IN.exchanges OUT.corrections" };
	struct tdm_buffer lines = { 0 };
	size_t count = 0;
	size_t epoch_count = 0;
	size_t next_epoch = 0;

	if (argc != 3 || tdm_exchange_log_load(argv[1], &log, &err) != TDM_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}

	const struct tdm_exchange_log_info info = tdm_exchange_log_get_info(log);
	const struct tdm_exchange_record *logged = tdm_exchange_log_records(log, &count);
	struct tdm_exchange_record *records = malloc((count + 1) * sizeof(*records));
	const struct tdm_epoch_record *epochs = tdm_exchange_log_epochs(log, &epoch_count);
	struct tdm_estimator *estimator = tdm_estimator_create(&info);
	enum tdm_status status = estimator && records ? TDM_OK : TDM_ERR_NOMEM;

	for (size_t i = 0; status == TDM_OK && i < count; i++) {
		records[i] = logged[i];
	}
	if (status == TDM_OK) {
		qsort(records, count, sizeof(*records), compare_records);
	}

	for (size_t i = 0; status == TDM_OK && i < count; i++) {
		while (next_epoch < epoch_count &&
			epochs[next_epoch].guest <= records[i].trace.guest_got) {
			status |= tdm_estimator_add_epoch(estimator, &epochs[next_epoch++]);
		}
		status |= tdm_estimator_add(estimator, &records[i]);

		const bool ends =
			i + 1 == count ||
			records[i + 1].trace.host_sent - records[i].trace.host_got > BURST_GAP_NS;

		if (ends && status == TDM_OK) {
			status = i + 1 == count ? tdm_estimator_finish(estimator, &lines, &err)
						: tdm_estimator_update(estimator, &lines, &err);
		}
	}
	if (status == TDM_OK) {
		status = tdm_buffer_append(&lines, "end\n", 4);
	}
	if (status == TDM_OK) {
		status = tdm_text_write_file(argv[2], lines.bytes, lines.size, &err);
	}
	if (status != TDM_OK) {
		fprintf(stderr, "%s\n", err.text);
	}
	free(records);
	tdm_estimator_destroy(estimator);
	tdm_exchange_log_destroy(log);
	tdm_buffer_release(&lines);
	return status == TDM_OK ? 0 : 1;
}
