/* SPDX-License-Identifier: MIT */
/*
 * vmm_libvirt.h - what libvirt's status file of a running guest tells: name, process, CID, threads of the CPUs.
 */
#ifndef CLI_VMM_LIBVIRT_H
#define CLI_VMM_LIBVIRT_H

#include "vmm_find.h"

/**
 * Reads the text of a status file ("<domstatus state='running' ... pid='17'> ... <vcpu id='0' pid='21'/> ...").
 *
 * @param text  Ends with a NUL; whatever stands in it is only looked at.
 * @param vmm   Receives it; vmm_list_release() or free(vcpus) by the caller. Zeroed first.
 * @return False where it names no process.
 */
bool vmm_libvirt_parse(const char *text, struct vmm *vmm);

#endif
