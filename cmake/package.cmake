# SPDX-License-Identifier: MIT
# The Debian packages: scripts/package configures with the prefix /usr and runs cpack. What Debian wants in a form of its
# own (compressed pages, changelog, copyright, conffiles) is made by package_stage.cmake once the files are staged.
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Tandem developers <tandem@packages.invalid>")
set(CPACK_SET_DESTDIR ON) # session files are linked to below /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_stage.cmake)
set(CPACK_TANDEM_SOURCE_DIR ${PROJECT_SOURCE_DIR})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL tandem tandem-agent)
if(TARGET tandem-syscall-ust)
	list(APPEND CPACK_COMPONENTS_ALL tandem-syscalls)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(component TANDEM TANDEM-AGENT TANDEM-SYSCALLS)
	string(TOLOWER ${component} package)
	set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${package})
endforeach()

set(CPACK_DEBIAN_TANDEM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TANDEM_PACKAGE_DEPENDS babeltrace2)
set(CPACK_DEBIAN_TANDEM_PACKAGE_RECOMMENDS "libtraceevent1-plugin, tandem-syscalls (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TANDEM_PACKAGE_SUGGESTS "trace-cmd, lttng-tools, tandem-agent")
set(CPACK_COMPONENT_TANDEM_DESCRIPTION "host and guest traces on one corrected timeline
Records, reads and converts traces of a virtualisation host and of its
guests, and puts the guests' clocks on the host's with a known error.
.
It reads trace-cmd's trace.dat, perf.data and LTTng's CTF, as plugin of
babeltrace2 too, and writes CTF that Trace Compass analyses.")

set(CPACK_DEBIAN_TANDEM-AGENT_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TANDEM-AGENT_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/../packaging/conffiles)
set(CPACK_COMPONENT_TANDEM-AGENT_DESCRIPTION "answers a tracing host's time exchanges in a guest
Belongs into a virtual machine whose host is traced with Tandem: answers
time exchanges and, where it is allowed to, records and sends the guest's
events. Linked statically; it never wakes while nobody asks.
.
It is started by: systemctl enable --now tandem-agent")

set(CPACK_DEBIAN_TANDEM-SYSCALLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TANDEM-SYSCALLS_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/agent/ust)
set(CPACK_DEBIAN_TANDEM-SYSCALLS_PACKAGE_DEPENDS "lttng-tools")
set(CPACK_DEBIAN_TANDEM-SYSCALLS_PACKAGE_RECOMMENDS "tandem (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_TANDEM-SYSCALLS_DESCRIPTION "records a program's system calls through LTTng-UST
The provider behind \"tandem syscalls\": objects that are preloaded into a
program and record every system call that it makes, without root and
without a kernel module.")
include(CPack)

# The agent's package has one agent: the static one where it can be built.
if(TARGET tandem-agent-static)
	set(agent tandem-agent-static)
else()
	set(agent tandem-agent)
endif()
install(PROGRAMS $<TARGET_FILE:${agent}> DESTINATION ${CMAKE_INSTALL_SBINDIR} RENAME tandem-agent
	COMPONENT tandem-agent EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/tandem-agent.default DESTINATION /etc/default RENAME tandem-agent
	COMPONENT tandem-agent EXCLUDE_FROM_ALL)
