/* SPDX-License-Identifier: MIT */
#include "doctor.h"
#include "json_writer.h"
#include "tandem_version.h"

static const char *const level_words[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_NOTE] = "note",
	[DOCTOR_BAD] = "bad",
};

void doctor_print_text(const struct doctor *doctor, FILE *out)
{
	for (size_t i = 0; i < doctor->finding_count; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		if (doctor->command.quiet && finding->level != DOCTOR_BAD) {
			continue;
		}
		fprintf(out, "%-4s  %-11s %s%s%s%s%s\n", level_words[finding->level],
			finding->check, finding->subject, *finding->subject ? ": " : "",
			finding->text, *finding->remedy ? "; remedy: " : "", finding->remedy);
	}
}

void doctor_print_json(const struct doctor *doctor, FILE *out)
{
	struct json_writer json = { .out = out };

	json_object_begin(&json, NULL);
	json_text(&json, "version", TDM_VERSION);
	json_array_begin(&json, "checks");
	for (size_t i = 0; i < doctor->finding_count; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		json_object_begin(&json, NULL);
		json_text(&json, "check", finding->check);
		if (*finding->subject) {
			json_text(&json, "guest", finding->subject);
		}
		json_text(&json, "level", level_words[finding->level]);
		json_text(&json, "text", finding->text);
		json_text(&json, "remedy", *finding->remedy ? finding->remedy : NULL);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	fputc('\n', out);
}
