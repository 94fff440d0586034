/* SPDX-License-Identifier: MIT */
/*
 * print_trial_priv.h - a format is parsed in another process first: libtraceevent ends the one in which it meets a text that
 * is damaged in the wrong place.
 */
#ifndef TANDEM_PRINT_TRIAL_PRIV_H
#define TANDEM_PRINT_TRIAL_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A child that tries what it is asked to; zero-initialised: none yet. */
struct print_trial {
	pid_t pid; /* 0 = none */
	int ask_read, ask_write, answer_read;
	size_t epoch;
};

/**
 * Runs @p attempt(@p user, @p what) in the child and tells whether it came back with true. A child that it
 * killed, or that took too long, is replaced at the next call.
 *
 * @param what   Existed when the child was made; else @p epoch must be another one than then.
 * @param epoch  A new number makes a new child, which sees the memory as it is now.
 */
bool print_trial_passes(struct print_trial *trial, bool (*attempt)(void *user, const void *what),
	void *user, const void *what, size_t epoch);

/** Ends the child. */
void print_trial_end(struct print_trial *trial);

#endif
