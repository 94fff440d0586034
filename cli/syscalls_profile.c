/* SPDX-License-Identifier: MIT */
#include "own_files.h"
#include "syscalls_priv.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A session file of some thousand lines is not one of ours. */
#define PROFILE_BYTES_MAX (1u << 20)

enum tdm_status syscalls_find_parts(bool wrap, struct syscalls_parts *parts, struct tdm_error *err)
{
	static const char *const objects_beside[] = { "../agent/ust", "../" TANDEM_LIBDIR "/tandem",
		"../lib/tandem" };
	static const char *const sessions_beside[] = { "../sessions", "../share/tandem/sessions" };
	const char *object = wrap ? "libtandem-syscall-wrap.so" : "libtandem-syscall.so";
	char folder[PATH_MAX];

	if (!own_files_find(objects_beside, sizeof(objects_beside) / sizeof(objects_beside[0]),
		    TANDEM_PRELOAD_DIR, object, folder)) {
		return tdm_fail(err, TDM_ERR_IO, "%s is neither beside this program nor in %s",
			object, folder);
	}
	if (snprintf(parts->preload, sizeof(parts->preload), "%s/%s", folder, object) >=
		(int)sizeof(parts->preload)) {
		return tdm_fail(err, TDM_ERR_RANGE, "the path of %s is too long", object);
	}
	if (strpbrk(parts->preload, " :")) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"\"%s\": a blank or colon in this path would split it in LD_PRELOAD",
			parts->preload);
	}
	if (!own_files_find(sessions_beside, sizeof(sessions_beside) / sizeof(sessions_beside[0]),
		    TANDEM_SESSIONS_DIR, "tandem-syscalls.lttng", parts->sessions)) {
		return tdm_fail(err, TDM_ERR_IO,
			"the session files are neither beside this program nor in %s",
			parts->sessions);
	}
	return TDM_OK;
}

/* The text of the first element of this name; "" when there is none. */
static void element(const char *text, const char *name, char *room, size_t room_bytes)
{
	char open[64];
	const char *at;

	snprintf(open, sizeof(open), "<%s>", name);
	at = strstr(text, open);
	room[0] = '\0';
	if (at) {
		at += strlen(open);
		at += strspn(at, " \t\r\n");
		snprintf(room, room_bytes, "%.*s", (int)strcspn(at, "< \t\r\n"), at);
	}
}

static uint64_t element_number(const char *text, const char *name, uint64_t absent)
{
	char room[32];
	uint64_t number;

	element(text, name, room, sizeof(room));
	return cli_parse_uint(room, &number) ? number : absent;
}

static enum tdm_status read_text(const char *path, char **text, struct tdm_error *err)
{
	FILE *in = fopen(path, "re");
	size_t length;

	if (!in) {
		return tdm_fail_errno(err, errno, "profile \"%s\"", path);
	}
	*text = malloc(PROFILE_BYTES_MAX + 1);
	if (!*text) {
		fclose(in);
		return tdm_fail(err, TDM_ERR_NOMEM, "profile \"%s\": no memory", path);
	}
	length = fread(*text, 1, PROFILE_BYTES_MAX + 1, in);
	fclose(in);
	if (length > PROFILE_BYTES_MAX) {
		return tdm_fail(err, TDM_ERR_RANGE, "profile \"%s\" is larger than 1 MiB", path);
	}
	(*text)[length] = '\0';
	return TDM_OK;
}

enum tdm_status syscalls_profile_read(const struct syscalls_parts *parts, const char *wanted,
	struct syscalls_profile *profile, struct tdm_error *err)
{
	char path[2 * PATH_MAX];
	enum tdm_status status;

	memset(profile, 0, sizeof(*profile));
	if (strchr(wanted, '/')) {
		snprintf(path, sizeof(path), "%s", wanted);
	} else {
		snprintf(path, sizeof(path), "%s/%s%s.lttng", parts->sessions,
			strncmp(wanted, "tandem-", 7) == 0 ? "" : "tandem-", wanted);
		if (access(path, R_OK) != 0) {
			return tdm_fail(err, TDM_ERR_RANGE,
				"no profile \"%s\": there are tandem-syscalls, tandem-syscalls-flight, "
				"tandem-syscalls-small and tandem-syscalls-wakeup, or a path to a session file",
				wanted);
		}
	}
	status = read_text(path, &profile->text, err);
	if (status != TDM_OK) {
		syscalls_profile_release(profile);
		return status;
	}

	/* Comments would be searched too: the elements begin after the first one's end. */
	const char *body = strstr(profile->text, "<sessions>");
	char flag[8];

	if (!body) {
		tdm_fail(err, TDM_ERR_FORMAT,
			"profile \"%s\": no <sessions>: not a session file of LTTng", path);
		syscalls_profile_release(profile);
		return TDM_ERR_FORMAT;
	}
	element(body, "name", profile->name, sizeof(profile->name));
	profile->subbuf_bytes = element_number(body, "subbuffer_size", 524288);
	profile->subbuf_count = element_number(body, "subbuffer_count", 4);
	element(body, "snapshot_mode", flag, sizeof(flag));
	profile->is_snapshot = strcmp(flag, "true") == 0 || strcmp(flag, "1") == 0;
	if (!profile->name[0] || profile->subbuf_bytes > UINT64_C(1) << 40 ||
		profile->subbuf_count > 1u << 20) {
		tdm_fail(err, TDM_ERR_FORMAT,
			"profile \"%s\": no session name, or sizes that cannot be", path);
		syscalls_profile_release(profile);
		return TDM_ERR_FORMAT;
	}
	return TDM_OK;
}

void syscalls_profile_release(struct syscalls_profile *profile)
{
	free(profile->text);
	profile->text = NULL;
}

unsigned int syscalls_possible_cpus(void)
{
	FILE *in = fopen("/sys/devices/system/cpu/possible", "re");
	char text[4096] = "";
	unsigned int last = 0;

	if (in) {
		if (!fgets(text, sizeof(text), in)) {
			text[0] = '\0';
		}
		fclose(in);
	}
	/* "0-127" or "0,2-3": LTTng makes a ring for each number up to the highest. */
	for (const char *at = text; *at; at++) {
		if (*at >= '0' && *at <= '9') {
			last = (unsigned int)strtoul(at, (char **)&at, 10);
			at--;
		}
	}
	return text[0] ? last + 1 : (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
}

uint64_t syscalls_profile_shm_bytes(const struct syscalls_profile *profile, unsigned int cpus)
{
	/* An overwriting ring has one sub-buffer more, for the reader; a page or two of heads each. */
	const uint64_t count =
		profile->subbuf_count + (strstr(profile->text, ">OVERWRITE<") ? 1 : 0);

	return cpus * (profile->subbuf_bytes * count + count * 1024 + 65536);
}

enum tdm_status syscalls_check_shm(
	const struct syscalls_profile *profile, const struct tdm_log *log, struct tdm_error *err)
{
	const char *const shm = getenv("TANDEM_SHM_DIR") ? getenv("TANDEM_SHM_DIR") : "/dev/shm";
	const unsigned int cpus = syscalls_possible_cpus();
	const uint64_t need = syscalls_profile_shm_bytes(profile, cpus);
	struct statvfs room;

	if (statvfs(shm, &room) != 0) {
		return tdm_fail_errno(err, errno, "%s, where LTTng keeps its rings", shm);
	}

	const uint64_t total = (uint64_t)room.f_blocks * room.f_frsize;
	const uint64_t left = (uint64_t)room.f_bavail * room.f_frsize;

	if (need > left) {
		return tdm_fail(err, TDM_ERR_RANGE,
			"the rings of profile \"%s\" need %" PRIu64
			" MiB of shared memory (%u possible CPUs), and %s "
			"has %" PRIu64 " MiB left of %" PRIu64
			"; --profile tandem-syscalls-small needs less, or "
			"enlarge it: mount -o remount,size=%" PRIu64
			"M %s (containers: --shm-size)",
			profile->name, need >> 20, cpus, shm, left >> 20, total >> 20,
			(need * 2) >> 20, shm);
	}
	if (need > total / 4) {
		TDM_WARNING(log,
			"The rings take more than a quarter of %s: need-mib=%" PRIu64
			", size-mib=%" PRIu64,
			shm, need >> 20, total >> 20);
	}
	return TDM_OK;
}

static void write_event(FILE *out, const char *name)
{
	fprintf(out,
		"              <event>\n                <name>%s</name>\n"
		"                <enabled>true</enabled>\n                <type>TRACEPOINT</type>\n"
		"              </event>\n",
		name);
}

static void write_chosen(FILE *out, const struct syscalls_choice *choice)
{
	bool unknown = false;

	for (unsigned int nr = 0; nr < 512; nr++) {
		const char *name = syscalls_typed_name(nr);
		char event[128];

		if (!syscalls_choice_has(choice, nr)) {
			continue;
		}
		if (!name) {
			unknown =
				true; /* the provider itself leaves out the numbers that are not chosen */
			continue;
		}
		snprintf(event, sizeof(event), "tandem:syscall_entry_%s", name);
		write_event(out, event);
		snprintf(event, sizeof(event), "tandem:syscall_exit_%s", name);
		write_event(out, event);
	}
	if (unknown) {
		write_event(out, "tandem:syscall_entry_unknown");
		write_event(out, "tandem:syscall_exit_unknown");
	}
	write_event(out, "tandem:process_*");
	write_event(out, "tandem:declined");
}

static void write_adapted(const struct syscalls_profile *profile,
	const struct syscalls_choice *choice, bool procname, bool live, FILE *out)
{
	const char *at = profile->text;

	/* Line by line: the profile's own text, with what is asked for put in before closing elements. */
	bool in_events = false;

	while (*at) {
		const size_t length = strcspn(at, "\n") + (strchr(at, '\n') ? 1 : 0);
		const char *const found_contexts = strstr(at, "</contexts>");
		const char *const found_end = strstr(at, "</session>");

		if (!choice->all && strstr(at, "</events>") >= at &&
			strstr(at, "</events>") < at + length) {
			write_chosen(out, choice);
			in_events = false;
		}
		if (procname && found_contexts && found_contexts < at + length) {
			fputs("              <context>\n                <type>PROCNAME</type>\n"
			      "              </context>\n",
				out);
		}
		if (live && !profile->is_snapshot && found_end && found_end < at + length) {
			fputs("    <attributes>\n      <live_timer_interval>1000000</live_timer_interval>\n"
			      "    </attributes>\n",
				out);
		}
		if (!in_events) {
			fwrite(at, 1, length, out);
		}
		if (!choice->all && strstr(at, "<events>") &&
			strstr(at, "<events>") < at + length) {
			in_events = true;
		}
		at += length;
	}
}

/* Does the text from begin to end, an <event>, name one of ours without saying of which log level? */
static bool wants_level(const char *begin, const char *end)
{
	const char *const name = strstr(begin, "<name>tandem:");
	const char *const level = strstr(begin, "<loglevel");

	return name && name < end && (!level || level > end);
}

/* Copies the text; each event of ours gets the level. */
static void write_with_level(FILE *out, const char *text, unsigned int level)
{
	static const char close[] = "</event>";
	const char *at = text;

	for (const char *begin; (begin = strstr(at, "<event>"));) {
		const char *const end = strstr(begin, close);

		if (!end) {
			break;
		}
		fwrite(at, 1, (size_t)(end - at), out);
		if (wants_level(begin, end)) {
			fprintf(out, "<loglevel_type>SINGLE</loglevel_type><loglevel>%u</loglevel>",
				level);
		}
		fputs(close, out);
		at = end + sizeof(close) - 1;
	}
	fputs(at, out);
}

enum tdm_status syscalls_profile_write(const struct syscalls_profile *profile,
	const struct syscalls_choice *choice, unsigned int level, bool procname, bool live,
	FILE *out, struct tdm_error *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *const adapted = open_memstream(&text, &size);

	if (!adapted) {
		return tdm_fail_errno(err, errno, "the session file");
	}
	write_adapted(profile, choice, procname, live, adapted);

	const bool is_whole = fclose(adapted) == 0 && text;

	if (is_whole) {
		write_with_level(out, text, level);
	}
	free(text);
	if (!is_whole || fflush(out) != 0 || ferror(out)) {
		return tdm_fail_errno(err, errno, "writing the session file");
	}
	return TDM_OK;
}
