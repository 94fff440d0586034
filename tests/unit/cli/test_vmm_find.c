/* SPDX-License-Identifier: MIT */
/* Which process runs a guest, from trees that look like /proc, /run/libvirt/qemu and KVM's debugfs. */
#include "guest_address.h"
#include "vmm_libvirt.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tdm_cmocka.h>
#include <unistd.h>

struct tree {
	char root[64], proc[80], libvirt[80], kvm[80];
	struct vmm_places places;
	struct vmm_list list;
};

/* Writes a file and the folders above it. */
static void put(const struct tree *tree, const char *name, const void *bytes, size_t size)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", tree->root, name);
	for (char *at = path + strlen(tree->root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}

	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

#define PUT(tree, name, text) put(tree, name, text, sizeof(text) - 1)

static const char libvirt_web[] =
	"<!--\nWARNING: THIS IS AN AUTO-GENERATED FILE.\n-->\n"
	"<domstatus state='running' reason='booted' pid='300'>\n"
	"  <taint flag='host-cpu'/>\n"
	"  <monitor path='/var/lib/libvirt/qemu/domain-1-web/monitor.sock' type='unix'/>\n"
	"  <vcpus>\n    <vcpu id='0' pid='311'/>\n    <vcpu id='1' pid='312'/>\n  </vcpus>\n"
	"  <domain type='kvm' id='1'>\n    <name>web &amp; shop</name>\n"
	"    <vcpu placement='static'>2</vcpu>\n"
	"    <devices>\n      <vsock model='virtio'>\n        <cid auto='yes' address='7'/>\n      </vsock>\n"
	"    </devices>\n  </domain>\n</domstatus>\n";

static int make_tree(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	snprintf(tree->root, sizeof(tree->root), "/tmp/vmm_find.XXXXXX");
	if (!mkdtemp(tree->root)) {
		free(tree);
		return 1;
	}
	snprintf(tree->proc, sizeof(tree->proc), "%s/proc", tree->root);
	snprintf(tree->libvirt, sizeof(tree->libvirt), "%s/libvirt", tree->root);
	snprintf(tree->kvm, sizeof(tree->kvm), "%s/kvm", tree->root);
	tree->places = (struct vmm_places){ tree->proc, tree->libvirt, tree->kvm };
	/* By hand: names, a CID, a forwarded port. */
	PUT(tree, "proc/100/cmdline",
		"/usr/bin/qemu-system-x86_64\0-name\0guest=db,debug-threads=on\0-device\0"
		"vhost-vsock-pci,guest-cid=3\0-netdev\0"
		"user,id=n0,hostfwd=tcp:127.0.0.1:5022-:22,hostfwd=tcp::5990-:8990\0");
	PUT(tree, "proc/100/task/100/comm", "qemu-system-x86\n");
	PUT(tree, "proc/100/task/104/comm", "CPU 1/KVM\n");
	PUT(tree, "proc/100/task/103/comm", "CPU 0/KVM\n");
	PUT(tree, "proc/100/task/105/comm", "CPU 4000000000/KVM\n");
	/* Threads without names: KVM's debugfs tells. */
	PUT(tree, "proc/200/cmdline", "qemu-system-x86_64\0-name\0cache\0-m\0512\0");
	PUT(tree, "proc/200/task/200/comm", "qemu-system-x86\n");
	PUT(tree, "kvm/200-12/vcpu0/pid", "203\n");
	PUT(tree, "kvm/2000-12/vcpu0/pid", "999\n");
	/* libvirt's, devices as JSON. */
	PUT(tree, "proc/300/cmdline",
		"/usr/bin/qemu-system-x86_64\0-name\0guest=web,debug-threads=on\0-device\0"
		"{\"driver\":\"vhost-vsock-pci\",\"id\":\"vsock0\",\"guest-cid\":7,\"vhostfd\":\"30\"}\0");
	put(tree, "libvirt/web.xml", libvirt_web, sizeof(libvirt_web) - 1);
	/* Its process is gone. */
	PUT(tree, "libvirt/old.xml",
		"<domstatus state='running' pid='301'><domain><name>old</name></domain></domstatus>");
	PUT(tree, "libvirt/bad.xml", "<domstatus pid='");
	/* The others. */
	PUT(tree, "proc/400/cmdline",
		"/usr/bin/firecracker\0--id\0edge\0--api-sock\0/run/edge.sock\0");
	PUT(tree, "proc/400/task/402/comm", "fc_vcpu 0\n");
	PUT(tree, "proc/400/task/403/comm", "fc_vcpu 1\n");
	PUT(tree, "proc/500/cmdline",
		"cloud-hypervisor\0--api-socket=path=/run/batch.sock\0--vsock\0cid=9,socket=/run/batch.vsock\0");
	PUT(tree, "proc/500/task/507/comm", "vcpu0\n");
	/* No VMMs, though they talk of them. */
	PUT(tree, "proc/600/cmdline", "vim\0-name\0guest=db\0");
	PUT(tree, "proc/601/cmdline",
		"/bin/sh\0-c\0qemu-system-x86_64 -device vhost-vsock-pci,guest-cid=3\0");
	PUT(tree, "proc/602/cmdline", "");
	vmm_list_read(&tree->places, &tree->list);
	*state = tree;
	return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
	(void)info;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int remove_tree(void **state)
{
	struct tree *tree = *state;

	vmm_list_release(&tree->list);
	nftw(tree->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(tree);
	return 0;
}

static int pid_of(const struct tree *tree, const char *name, const char *address)
{
	struct tdm_address at;

	if (address) {
		assert_int_equal(
			tdm_address_parse(address, TDM_ADDRESS_CONNECT, &at, NULL), TDM_OK);
	}

	const struct vmm *vmm = vmm_list_match(&tree->list, name, address ? &at : NULL);

	return vmm ? vmm->pid : -1;
}

static void only_vmms_are_guests(void **state)
{
	const struct tree *tree = *state;

	assert_int_equal(tree->list.count, 5);
	assert_null(vmm_list_by_pid(&tree->list, 600));
	assert_null(vmm_list_by_pid(&tree->list, 601));
}

static void an_address_says_it_before_a_name(void **state)
{
	const struct tree *tree = *state;

	assert_int_equal(pid_of(tree, "x", "vsock:3"), 100);
	assert_int_equal(pid_of(tree, "x", "vsock:7"), 300);
	assert_int_equal(pid_of(tree, "x", "vsock:70"), -1);
	assert_int_equal(pid_of(tree, "db", "vsock:7"), 300);
	assert_int_equal(pid_of(tree, "x", "tcp:127.0.0.1:5990"), 100);
	assert_int_equal(pid_of(tree, "x", "tcp:127.0.0.1:599"), -1);
	assert_int_equal(pid_of(tree, "cache", "tcp:10.0.0.1"), 200);
	/* Its CID is of a UNIX socket, not of this kernel. */
	assert_int_equal(pid_of(tree, "x", "vsock:9"), -1);
}

static void names_are_whole_names(void **state)
{
	const struct tree *tree = *state;

	assert_int_equal(pid_of(tree, "db", NULL), 100);
	assert_int_equal(pid_of(tree, "d", NULL), -1);
	assert_int_equal(pid_of(tree, "web & shop", NULL), 300);
	assert_int_equal(pid_of(tree, "edge", NULL), 400);
	assert_int_equal(pid_of(tree, "batch", NULL), 500);
	assert_int_equal(pid_of(tree, "old", NULL), -1);
}

static void two_of_one_name_are_none(void **state)
{
	struct tree *tree = *state;

	PUT(tree, "proc/101/cmdline", "qemu-system-x86_64\0-name\0db\0");
	vmm_list_release(&tree->list);
	vmm_list_read(&tree->places, &tree->list);
	assert_int_equal(pid_of(tree, "db", NULL), -1);
	assert_int_equal(pid_of(tree, "db", "vsock:3"), 100);
}

static void check_threads(const struct tree *tree, int pid, size_t known, int first, int second)
{
	struct tdm_vcpu vcpus[3];

	assert_int_equal(
		vmm_threads(&tree->places, vmm_list_by_pid(&tree->list, pid), vcpus, 3), known);
	assert_int_equal(vcpus[0].vcpu, 0);
	assert_int_equal(vcpus[1].vcpu, 1);
	assert_int_equal(vcpus[0].host_tid, first);
	assert_int_equal(vcpus[1].host_tid, second);
	assert_int_equal(vcpus[2].host_tid, -1);
}

static void the_threads_of_each_vmm_are_found(void **state)
{
	const struct tree *tree = *state;

	check_threads(tree, 100, 2, 103, 104);
	check_threads(tree, 200, 1, 203, -1);
	check_threads(tree, 300, 2, 311, 312);
	check_threads(tree, 400, 2, 402, 403);
	check_threads(tree, 500, 1, 507, -1);
	check_threads(tree, 12345, 0, -1, -1);
}

static void a_name_alone_is_an_address_where_it_can_be(void **state)
{
	const struct tree *tree = *state;
	struct tdm_address address;
	struct tdm_error err;
	enum guest_agent agent;

	assert_int_equal(
		guest_address_parse("db", "", &tree->list, &address, &agent, &err), TDM_OK);
	assert_int_equal(address.kind, TDM_ADDRESS_VSOCK);
	assert_int_equal(address.cid, 3);
	assert_int_equal(address.port, TDM_DEFAULT_PORT);
	assert_int_equal(guest_address_parse(
				 "shop", "vm:web & shop:77", &tree->list, &address, &agent, &err),
		TDM_OK);
	assert_int_equal(address.cid, 7);
	assert_int_equal(address.port, 77);
	assert_int_equal(guest_address_parse("cache", "", &tree->list, &address, &agent, &err),
		TDM_ERR_RANGE);
	assert_non_null(strstr(err.text, "200"));
	assert_int_equal(guest_address_parse("batch", "", &tree->list, &address, &agent, &err),
		TDM_ERR_RANGE);
	assert_int_equal(guest_address_parse("nobody", "", &tree->list, &address, &agent, &err),
		TDM_ERR_RANGE);
	assert_non_null(strstr(err.text, "vsock:3"));
	assert_int_equal(
		guest_address_parse("x", "trace-cmd:vsock:4", &tree->list, &address, &agent, &err),
		TDM_OK);
	assert_int_equal(agent, GUEST_AGENT_TRACECMD);
	assert_int_equal(address.port, 823);
	/* A port that was written is that port, also our own agent's. */
	assert_int_equal(guest_address_parse("x", "trace-cmd:10.0.0.5:8990", &tree->list, &address,
				 &agent, &err),
		TDM_OK);
	assert_int_equal(address.port, 8990);
}

/* Whatever a file of libvirt's ends in: looked at under sanitizers. */
static void a_status_file_cut_short_anywhere_is_harmless(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(libvirt_web); size++) {
		char *text = strndup(libvirt_web, size);
		struct vmm vmm;

		assert_non_null(text);
		if (vmm_libvirt_parse(text, &vmm)) {
			assert_int_equal(vmm.pid, 300);
		}
		free(vmm.vcpus);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_vmms_are_guests, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(
			an_address_says_it_before_a_name, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(names_are_whole_names, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(two_of_one_name_are_none, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(
			the_threads_of_each_vmm_are_found, make_tree, remove_tree),
		cmocka_unit_test_setup_teardown(
			a_name_alone_is_an_address_where_it_can_be, make_tree, remove_tree),
		cmocka_unit_test(a_status_file_cut_short_anywhere_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
