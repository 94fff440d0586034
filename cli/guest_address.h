/* SPDX-License-Identifier: MIT */
/*
 * guest_address.h - the ADDR of --guest NAME=ADDR, and what stands for it where only a name is given.
 */
#ifndef CLI_GUEST_ADDRESS_H
#define CLI_GUEST_ADDRESS_H

#include "options.h"
#include "vmm_find.h"
#include <tandem/status.h>

enum guest_agent {
	GUEST_AGENT_TANDEM,
	GUEST_AGENT_TRACECMD /* "trace-cmd:HOST[:PORT]", "trace-cmd:vsock:CID[:PORT]" */
};

/** "--guest web", without an address, names the guest that is called so: moves the text to the name where it is one. */
void guest_name_alone(struct cli_named *guest);

/**
 * Parses where a guest's agent is.
 *
 * @param name     What the user calls the guest.
 * @param text     tcp:HOST[:PORT], vsock:CID[:PORT], unix:PATH, trace-cmd:..., or vm:VMNAME[:PORT]: the vsock CID of the guest
 *                 that libvirt or QEMU's command line calls so; NULL or "" is vm:NAME.
 * @param list     Guests of this machine; for vm: only.
 * @param address  Receives it; a host's name is not resolved yet.
 * @param agent    Receives which protocol it speaks.
 * @retval TDM_ERR_FORMAT  No address.
 * @retval TDM_ERR_RANGE   No such guest, or none with a CID; @p err says which there are.
 */
enum tdm_status guest_address_parse(const char *name, const char *text, const struct vmm_list *list,
	struct tdm_address *address, enum guest_agent *agent, struct tdm_error *err);

/** Adds to the message of a guest that could not be reached (TDM_ERR_IO) what finds out why; other faults say it themselves. */
void guest_address_hint(const char *name, const struct tdm_address *address, struct tdm_error *err);

#endif
