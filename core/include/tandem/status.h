/* SPDX-License-Identifier: MIT */
/*
 * status.h - how a function of the library says what became of it, and the message that goes with a fault.
 */
#ifndef TANDEM_STATUS_H
#define TANDEM_STATUS_H

enum tdm_status {
	TDM_OK = 0,
	TDM_END,             /* no more records: a normal outcome */
	TDM_AGAIN,           /* a live source has nothing yet: call again later */
	TDM_ERR_FORMAT,      /* the input breaks its format: the input is at fault, not us */
	TDM_ERR_RANGE,       /* a value does not fit what it is meant for */
	TDM_ERR_NOMEM,       /* no memory, or a stated cap on memory was reached */
	TDM_ERR_IO,          /* the operating system refused a file or socket operation */
	TDM_ERR_UNSUPPORTED, /* valid, but not something this version reads */
	TDM_ERR_PEER,        /* the other end of a connection broke the protocol or went away */
};

/* A message with its place. Whoever finds the fault writes it once; callers only prefix where. */
struct tdm_error {
	enum tdm_status status;
	char text[512];
};

/**
 * Writes the message of a fault and returns its status, so that a caller can return the call.
 *
 * @param err     Receives status and text; may be NULL. Text that does not fit is cut.
 * @param status  The status to return.
 */
enum tdm_status tdm_fail(struct tdm_error *err, enum tdm_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * As tdm_fail(), with ": " and the text of @p errno_value appended. Status TDM_ERR_IO, or TDM_ERR_NOMEM for ENOMEM.
 */
enum tdm_status tdm_fail_errno(struct tdm_error *err, int errno_value, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Puts where in front of a message that is there already: "where: text". Returns the status of @p err.
 */
enum tdm_status tdm_error_prefix(struct tdm_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The name of a status, for logs and tests. Never NULL. */
const char *tdm_status_name(enum tdm_status status);

#endif
