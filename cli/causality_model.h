/* SPDX-License-Identifier: MIT */
/*
 * causality_model.h - what cannot be: guest events while the guest did not run, packets received before they were sent.
 *
 * Times are ns on one timeline, as corrected. First the host's events are told, in order, then the guest's; then the
 * model is asked. An event of guest CPU n is possible only between a kvm_entry and the next kvm_exit of the host thread
 * that runs vCPU n; what lies before its first or behind its last window is not judged.
 */
#ifndef CLI_CAUSALITY_MODEL_H
#define CLI_CAUSALITY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAUSALITY_KEY_BYTES 56
#define CAUSALITY_NO_TID    (-1)
#define CAUSALITY_NO_VCPU   UINT32_MAX

/* The headers of one TCP packet by which both sides' records of it are matched; zero-filled first. */
struct causality_packet {
	uint8_t key[CAUSALITY_KEY_BYTES];
	int64_t time_ns;
};

enum causality_way {
	CAUSALITY_SENT_BY_HOST,
	CAUSALITY_GOT_BY_GUEST,
	CAUSALITY_SENT_BY_GUEST,
	CAUSALITY_GOT_BY_HOST,
	CAUSALITY_WAYS
};

struct causality; /* opaque */

/** @return Owned by the caller; NULL without memory. */
struct causality *causality_create(void);
void causality_destroy(struct causality *model);

/* All return false without memory. */

/** The host switched to a task on a CPU. */
bool causality_host_switch(struct causality *model, uint32_t cpu, int32_t tid);

/** A host thread entered or left a guest. @p tid CAUSALITY_NO_TID: whoever runs on @p cpu; @p vcpu as far as known. */
bool causality_host_entry(
	struct causality *model, uint32_t cpu, int32_t tid, uint32_t vcpu, int64_t time_ns);
bool causality_host_exit(
	struct causality *model, uint32_t cpu, int32_t tid, uint32_t vcpu, int64_t time_ns);

bool causality_packet(
	struct causality *model, enum causality_way way, const struct causality_packet *packet);

/** An event of the guest on its CPU. */
bool causality_guest_event(struct causality *model, uint32_t vcpu, int64_t time_ns);

/** Forgets the guest, keeps the host: for the next guest. */
void causality_forget_guest(struct causality *model);

/* Events of one vCPU against its windows. */
struct causality_vcpu {
	uint32_t vcpu;
	int32_t tid;      /* of the host thread; CAUSALITY_NO_TID unknown */
	uint64_t windows; /* 0: the host's trace has none for it */
	uint64_t judged, outside, beyond;
	int64_t outside_median_ns, outside_most_ns; /* from the nearest window */
};

struct causality_packets {
	uint64_t pairs, violations;
	int64_t least_ns, median_ns; /* from sent to received */
};

struct causality_report {
	const struct causality_vcpu *vcpus; /* live as long as the model and its guest */
	size_t vcpu_count;
	uint64_t events, judged, outside, beyond;
	int64_t outside_median_ns, outside_most_ns;
	struct causality_packets to_guest, to_host;
	/* How far all guest times could be moved with every judged event still inside its window, and every packet in order. */
	bool has_room, has_packet_room;
	int64_t room_back_ns, room_ahead_ns; /* <= 0 and >= 0 */
	int64_t packet_room_back_ns, packet_room_ahead_ns;
	uint64_t contradictions;
};

/** Judges all that was told. @return False without memory. */
bool causality_judge(struct causality *model, struct causality_report *report);

#endif
