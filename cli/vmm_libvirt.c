/* SPDX-License-Identifier: MIT */
#include "vmm_libvirt.h"
#include <stdlib.h>
#include <string.h>

/* An element's start tag: what stands between "<NAME" and ">". */
struct tag {
	const char *at;
	size_t size;
};

/* The next "<NAME" behind at that is that name and no longer one. */
static bool find_tag(const char *at, const char *name, struct tag *tag)
{
	const size_t length = strlen(name);

	while ((at = strchr(at, '<'))) {
		at++;
		if (strncmp(at, name, length) == 0 && strchr(" \t\r\n/>", at[length]) &&
			at[length]) {
			const char *end = strchr(at, '>');

			tag->at = at + length;
			tag->size = end ? (size_t)(end - tag->at) : 0;
			return end != NULL;
		}
	}
	return false;
}

/* The value of KEY='VALUE' in a tag; its length, 0 where there is none. */
static size_t attribute(const struct tag *tag, const char *key, const char **value)
{
	const size_t length = strlen(key);

	for (size_t i = 0; i + length + 2 < tag->size; i++) {
		const char *at = tag->at + i;
		const char quote = at[length + 1];

		if ((i == 0 || strchr(" \t\r\n", at[-1])) && memcmp(at, key, length) == 0 &&
			at[length] == '=' && (quote == '\'' || quote == '"')) {
			const size_t left = tag->size - i - length - 2;
			const char *end = memchr(at + length + 2, quote, left);

			*value = at + length + 2;
			return end ? (size_t)(end - *value) : 0;
		}
	}
	return 0;
}

static bool number(const struct tag *tag, const char *key, unsigned long most, unsigned long *value)
{
	const char *text = NULL;
	char *end = NULL;

	if (!attribute(tag, key, &text)) {
		return false;
	}
	*value = strtoul(text, &end, 10);
	return end != text && (*end == '\'' || *end == '"') && *value <= most;
}

/* Names may hold "&amp;" and its kin; other entities are left as they are. */
static void copy_name(char *to, const char *from, size_t size)
{
	static const struct {
		const char *entity;
		char is;
	} entities[] = { { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&apos;", '\'' },
		{ "&quot;", '"' } };

	size_t used = 0;

	for (size_t i = 0; i < size && used < VMM_NAME_MAX; i++) {
		to[used] = from[i];
		for (size_t k = 0; k < sizeof(entities) / sizeof(entities[0]); k++) {
			const size_t length = strlen(entities[k].entity);

			if (size - i >= length &&
				memcmp(from + i, entities[k].entity, length) == 0) {
				to[used] = entities[k].is;
				i += length - 1;
				break;
			}
		}
		used++;
	}
	to[used] = '\0';
}

static void take_vcpus(const char *text, struct vmm *vmm)
{
	struct tag tag;
	const char *list = strstr(text, "<vcpus>");
	const char *end = list ? strstr(list, "</vcpus>") : NULL;

	for (const char *at = list; end && find_tag(at, "vcpu", &tag) && tag.at < end;
		at = tag.at) {
		unsigned long id, pid;

		if (!number(&tag, "id", VMM_VCPUS_MAX - 1, &id) ||
			!number(&tag, "pid", INT32_MAX, &pid) || pid == 0 ||
			vmm->vcpu_count == VMM_VCPUS_MAX) {
			continue;
		}

		struct tdm_vcpu *vcpus =
			realloc(vmm->vcpus, (vmm->vcpu_count + 1) * sizeof(*vcpus));

		if (!vcpus) {
			return;
		}
		vmm->vcpus = vcpus;
		vcpus[vmm->vcpu_count++] = (struct tdm_vcpu){ (uint32_t)id, (int32_t)pid };
	}
}

bool vmm_libvirt_parse(const char *text, struct vmm *vmm)
{
	struct tag tag;
	unsigned long value;

	memset(vmm, 0, sizeof(*vmm));
	if (!find_tag(text, "domstatus", &tag) || !number(&tag, "pid", INT32_MAX, &value) ||
		value == 0) {
		return false;
	}
	vmm->pid = (int)value;
	take_vcpus(text, vmm);

	/* What stands below <domain> is the guest's own; <name> is its first child of that name. */
	const char *domain = find_tag(text, "domain", &tag) ? tag.at : NULL;
	const char *name = domain ? strstr(domain, "<name>") : NULL;
	const char *end = name ? strstr(name, "</name>") : NULL;

	if (end) {
		copy_name(vmm->name, name + 6, (size_t)(end - name - 6));
	}
	if (domain && find_tag(domain, "vsock", &tag) && find_tag(tag.at, "cid", &tag) &&
		number(&tag, "address", UINT32_MAX, &value)) {
		vmm->cid = (uint32_t)value;
	}
	return true;
}
