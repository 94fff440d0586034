/* SPDX-License-Identifier: MIT */
/*
 * ctf_state_dump.h - the state dump that a kernel's tracer would have written, for system calls that were recorded in user
 * space: a stream of its own with the threads that were seen.
 */
#ifndef TANDEM_CLI_CTF_STATE_DUMP_H
#define TANDEM_CLI_CTF_STATE_DUMP_H

#include <babeltrace2/babeltrace.h>
#include <stdbool.h>
#include <stdint.h>
#include <tandem/buffer.h>
#include <tandem/status.h>

struct ctf_thread {
	int32_t tid, pid;      /* tid 0: an empty place */
	bool has_context_name; /* the events carry it, so no event of the recorder tells it */
	char comm[64];
};

/* The threads of a trace; zero-initialised: none yet. */
struct ctf_threads {
	struct ctf_thread *of; /* owned; open addressing by tid */
	size_t room, count;
	bool has_first;
	uint64_t first_value; /* of the clock, of the earliest event */
};

/**
 * Learns from an event's context, and names from tandem:process_start where no context has them: the last program of a
 * process. Without memory, or beyond 65536 threads, nothing is learned.
 */
void ctf_threads_see(struct ctf_threads *threads, const bt_message *message);
void ctf_threads_release(struct ctf_threads *threads);

/**
 * Writes the stream into a trace's folder and declares it.
 *
 * @param metadata  The text of the trace's metadata; what declares the stream is appended.
 * @param written   Receives the bytes of the stream.
 */
enum tdm_status ctf_state_dump_put(const struct ctf_threads *threads, const char *dir,
	struct tdm_buffer *metadata, uint64_t *written, struct tdm_error *err);

#endif
