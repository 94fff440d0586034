/* SPDX-License-Identifier: MIT */
/*
 * requester.h - the asking end of time exchanges: bursts of probes, and the samples that come of them.
 */
#ifndef TANDEM_REQUESTER_H
#define TANDEM_REQUESTER_H

#include <tandem/buffer.h>
#include <tandem/local_clock.h>
#include <tandem/sync_link.h>

enum {
	TDM_BURST_START_COUNT = 340,  /* exchanges at the start and the end of a session */
	TDM_BURST_SESSION_COUNT = 32, /* each second in between */
	TDM_BURST_STEERED_COUNT =
		8, /* each 250 ms where a steered clock has no raw one beside it */
	TDM_BURST_COUNT_MAX = 16384,
	TDM_BURST_WARM_UP = 4, /* first exchanges of each burst that are thrown away */
	TDM_PIPELINE_MAX = 16
};

/* Flags of one sample. */
enum {
	TDM_SAMPLE_PIPELINED = 1, /* feeds the bound, not the estimate */
	TDM_SAMPLE_QUEUED = 2,    /* its pair met a queue: the same */
	TDM_SAMPLE_HAS_RAW = 4,   /* raw readings differ from the trace clock's */
	TDM_SAMPLE_STAMPED = 8    /* all four kernel stamps are there */
};

/* One exchange: host sent, guest got, guest sent, host got; by trace clock, raw clock and kernel stamps. */
struct tdm_exchange_sample {
	uint64_t sequence; /* counts exchanges, those that warmed up left out: a gap is a loss */
	uint32_t epoch;
	uint16_t cpu; /* of the guest */
	uint16_t flags;
	uint64_t h1, g2, g3, h4;
	uint64_t h1_raw, g2_raw, g3_raw, h4_raw;
	uint64_t k1_ns, k2_ns, k3_ns, k4_ns; /* CLOCK_REALTIME */
};

/* How to do one burst. */
struct tdm_burst_plan {
	uint32_t count;
	uint32_t pipeline; /* probes outstanding at once; 0 or 1 = one */
	bool pairs;        /* send probes in pairs 100 us apart */
	bool stamps;       /* kernel stamps, where the connection allows; at most once a second */
	uint64_t
		target_bound; /* stop early once half the gap is at most this and no longer shrinks; 0 = never */
	uint32_t max_ms; /* hard deadline, at most TDM_BURST_MAX_MS; 0 = 500 */
};

/* What became of it. */
struct tdm_burst_result {
	const struct tdm_exchange_sample
		*samples; /* owned by the requester, valid until its next burst */
	size_t sample_count;
	uint32_t sent;
	uint32_t lost;     /* unanswered for 250 ms */
	uint32_t refused;  /* messages that were not an answer to anything outstanding */
	bool is_hung;      /* three lost in a row ended it */
	bool is_delayed;   /* round trips of 40 ms and its kind: the peer lacks TCP_NODELAY */
	bool has_stamps;   /* the kernel stamped at both ends */
	int32_t frequency; /* the peer's adjtimex, 2^-16 ppm */
	uint64_t median_round_trip_ns;
	const char *notes; /* text lines of the peer, notes_bytes long */
	size_t notes_bytes;
};

struct tdm_requester_options {
	struct tdm_address address;      /* numeric */
	const struct tdm_secret *secret; /* borrowed for the requester's life; may be NULL */
	const char *clock;               /* ftrace's name, for both ends; borrowed for the call */
	struct tdm_local_clock *local; /* the same clock here; borrowed for the requester's life */
	bool datagrams; /* exchange over UDP where TCP carries the connection: for kernel stamps */
	uint64_t first_sequence; /* goes on where an earlier connection stopped */
	uint32_t timeout_ms;     /* to connect and open; 0 = 5000 */
	int stop_fd;             /* readable: give up connecting (TDM_AGAIN); 0 = none */
};

/* What the peer said at OPENED. */
struct tdm_requester_peer {
	char boot_id[37]; /* its machine's boot: the identity of its clocks */
	char clock[16];
	char raw_clock[16];
	uint64_t unit_hz; /* of the clock; 1000000000 where not said */
	uint64_t cpus;    /* 0 = not said */
	uint32_t epoch;
	char raw_source[16]; /* tdm_clock_source() of its raw clock; "" = not said */
	bool has_host_clock; /* it can read the clock of the host that runs it, and takes us for that host */
};

/* What the peer told when it was asked between bursts, and when that was. */
struct tdm_requester_answer {
	struct tdm_sandwich before,
		after; /* own CLOCK_REALTIME in own raw clock, on either side of the asking */
	struct tdm_reading sent, got; /* own clocks, within these */
	const char *notes;            /* as of a burst */
	size_t notes_bytes;
};

struct tdm_requester; /* opaque */

/**
 * Connects and opens an exchange session.
 *
 * @return Owned by the caller; NULL with @p err filled.
 */
struct tdm_requester *tdm_requester_create(
	const struct tdm_requester_options *options, struct tdm_error *err);
void tdm_requester_destroy(struct tdm_requester *requester);

const struct tdm_requester_peer *tdm_requester_peer(const struct tdm_requester *requester);

/** The sequence of the sample that comes next. */
uint64_t tdm_requester_next_sequence(const struct tdm_requester *requester);

/** For tests of its options. */
int tdm_requester_fd(const struct tdm_requester *requester);

/**
 * Does one burst, pinned to the CPU it begins on.
 *
 * Losses are no fault: samples that came are delivered. Kernel stamps are off again whenever it returns.
 *
 * @retval TDM_OK        @p result is filled; it may hold no sample.
 * @retval TDM_ERR_PEER  The connection is of no more use: connect anew. Samples that came before are in @p result.
 */
enum tdm_status tdm_requester_burst(struct tdm_requester *requester,
	const struct tdm_burst_plan *plan, struct tdm_burst_result *result, struct tdm_error *err);

/**
 * Asks for notes without a burst. With them come readings of the host's clock, "p" lines, where the peer has one.
 *
 * @retval TDM_ERR_PEER  The connection is of no more use.
 */
enum tdm_status tdm_requester_ask(struct tdm_requester *requester,
	struct tdm_requester_answer *answer, struct tdm_error *err);

/** Numbers a sample that came about otherwise than by an exchange, among those that did. */
uint64_t tdm_requester_take_sequence(struct tdm_requester *requester);

#endif
