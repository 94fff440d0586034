/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <tandem/status.h>
#include <tandem/utf8.h>

static void __attribute__((format(printf, 2, 0)))
write_text(struct tdm_error *err, const char *format, va_list args)
{
	/* Arguments may point into the old text: build the new one beside it. */
	char text[sizeof(err->text)];

	vsnprintf(text, sizeof(text), format, args);
	/* Names out of files and words of peers stand in it: a terminal, or a log of lines, is not theirs. */
	tdm_utf8_make_visible(text, sizeof(text));
	memcpy(err->text, text, sizeof(text));
}

enum tdm_status tdm_fail(struct tdm_error *err, enum tdm_status status, const char *format, ...)
{
	if (err) {
		va_list args;

		va_start(args, format);
		write_text(err, format, args);
		va_end(args);
		err->status = status;
	}
	return status;
}

enum tdm_status tdm_fail_errno(struct tdm_error *err, int errno_value, const char *format, ...)
{
	const enum tdm_status status = errno_value == ENOMEM ? TDM_ERR_NOMEM : TDM_ERR_IO;

	if (err) {
		char reason[128];
		va_list args;

		va_start(args, format);
		write_text(err, format, args);
		va_end(args);

		const size_t used = strlen(err->text);

		snprintf(err->text + used, sizeof(err->text) - used, ": %s",
			strerror_r(errno_value, reason, sizeof(reason)));
		err->status = status;
	}
	return status;
}

enum tdm_status tdm_error_prefix(struct tdm_error *err, const char *format, ...)
{
	if (!err) {
		return TDM_ERR_FORMAT;
	}

	char old[sizeof(err->text)];
	va_list args;

	memcpy(old, err->text, sizeof(old));
	va_start(args, format);
	write_text(err, format, args);
	va_end(args);

	const size_t used = strlen(err->text);

	snprintf(err->text + used, sizeof(err->text) - used, ": %s", old);
	return err->status;
}

const char *tdm_status_name(enum tdm_status status)
{
	switch (status) {
	case TDM_OK:
		return "ok";
	case TDM_END:
		return "end";
	case TDM_AGAIN:
		return "again";
	case TDM_ERR_FORMAT:
		return "format";
	case TDM_ERR_RANGE:
		return "range";
	case TDM_ERR_NOMEM:
		return "no-memory";
	case TDM_ERR_IO:
		return "io";
	case TDM_ERR_UNSUPPORTED:
		return "unsupported";
	case TDM_ERR_PEER:
		return "peer";
	}
	return "unknown";
}
