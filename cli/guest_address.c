/* SPDX-License-Identifier: MIT */
#include "guest_address.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem/buffer.h>
#include <tandem/tracecmd.h>

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

void guest_name_alone(struct cli_named *guest)
{
	if (!*guest->name && strlen(guest->text) < sizeof(guest->name) &&
		tdm_machine_name_is_valid(guest->text)) {
		snprintf(guest->name, sizeof(guest->name), "%s", guest->text);
		guest->text = "";
	}
}

static enum tdm_status parse_tracecmd(
	const char *text, struct tdm_address *address, struct tdm_error *err)
{
	char rest[TDM_HOST_MAX + 32];

	snprintf(rest, sizeof(rest), "%s%s",
		has_prefix(text, "vsock:") || has_prefix(text, "tcp:") ? "" : "tcp:", text);

	const enum tdm_status status = tdm_address_parse(rest, TDM_ADDRESS_CONNECT, address, err);

	/* Another program's port is the default there. */
	if (status == TDM_OK && !address->has_port) {
		address->port = TDM_TRACECMD_DEFAULT_PORT;
	}
	return status;
}

/* "web" (process 17, vsock:3), without a name (process 18, no vsock). */
static enum tdm_status no_such_guest(
	const char *name, const struct vmm_list *list, struct tdm_error *err)
{
	struct tdm_buffer known = { 0 };

	for (size_t i = 0; i < list->count && i < 16; i++) {
		const struct vmm *vmm = &list->items[i];

		const char *quote = *vmm->name ? "\"" : "";

		tdm_buffer_printf(&known, "%s%s%s%s (process %d, ", i ? ", " : "", quote,
			*vmm->name ? vmm->name : "without a name", quote, vmm->pid);
		if (vmm->cid && !vmm->has_host_socket) {
			tdm_buffer_printf(&known, "vsock:%u)", vmm->cid);
		} else {
			tdm_buffer_printf(&known, "no vsock)");
		}
	}

	const enum tdm_status status =
		tdm_fail(err, TDM_ERR_RANGE, "no guest \"%s\" runs here: %.*s%s", name,
			(int)known.size, known.bytes ? (const char *)known.bytes : "",
			list->count ? " do; say NAME=ADDR"
				    : "no QEMU, Firecracker or Cloud Hypervisor is seen");

	tdm_buffer_release(&known);
	return status;
}

static enum tdm_status find_vm(const char *text, const struct vmm_list *list,
	struct tdm_address *address, struct tdm_error *err)
{
	const char *colon = strrchr(text, ':');
	char name[VMM_NAME_MAX + 1];
	char *end = NULL;
	unsigned long port = TDM_DEFAULT_PORT;

	snprintf(name, sizeof(name), "%s", text);
	if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
		(size_t)(colon - text) < sizeof(name)) {
		name[colon - text] = '\0';
		port = strtoul(colon + 1, &end, 10);
	}

	const struct vmm *vmm = vmm_list_match(list, name, NULL);

	if (!vmm || port == 0 || port > UINT32_MAX) {
		return no_such_guest(name, list, err);
	}
	if (!vmm->cid || vmm->has_host_socket) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"guest \"%s\" (process %d) has no vsock that this kernel knows: give its address, NAME=tcp:HOST[:PORT]",
			name, vmm->pid);
	}
	*address = (struct tdm_address){
		.kind = TDM_ADDRESS_VSOCK, .cid = vmm->cid, .port = (uint32_t)port
	};
	return TDM_OK;
}

enum tdm_status guest_address_parse(const char *name, const char *text, const struct vmm_list *list,
	struct tdm_address *address, enum guest_agent *agent, struct tdm_error *err)
{
	*agent = GUEST_AGENT_TANDEM;
	if (!text || !*text) {
		return find_vm(name, list, address, err);
	}
	if (has_prefix(text, "vm:")) {
		return find_vm(text + 3, list, address, err);
	}
	if (has_prefix(text, "trace-cmd:")) {
		*agent = GUEST_AGENT_TRACECMD;
		return parse_tracecmd(text + strlen("trace-cmd:"), address, err);
	}
	return tdm_address_parse(text, TDM_ADDRESS_CONNECT, address, err);
}

void guest_address_hint(const char *name, const struct tdm_address *address, struct tdm_error *err)
{
	const size_t length = strlen(err->text);
	char text[320], hint[sizeof(err->text)];

	if (err->status != TDM_ERR_IO) {
		return;
	}
	tdm_address_print(address, text, sizeof(text));

	const int size =
		snprintf(hint, sizeof(hint), "; try: tandem doctor --guest %s=%s", name, text);

	/* Half a command is of no use. */
	if (size > 0 && length + (size_t)size < sizeof(err->text)) {
		memcpy(err->text + length, hint, (size_t)size + 1);
	}
}
