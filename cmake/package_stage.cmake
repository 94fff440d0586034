# SPDX-License-Identifier: MIT
# Run by cpack between staging and packing: gives each package what Debian's policy wants.
set(source "${CPACK_TANDEM_SOURCE_DIR}")
# The same packages whenever they are built: the time is the last commit's.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
	execute_process(COMMAND git -C "${source}" log -1 --format=%ct OUTPUT_VARIABLE epoch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	if(epoch MATCHES "^[0-9]+$")
		set(ENV{SOURCE_DATE_EPOCH} ${epoch})
	endif()
endif()
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)

file(READ "${source}/LICENSE" licence)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]*)" ignored "${licence}")
set(owner "${CMAKE_MATCH_1}")
string(FIND "${licence}" "Permission is hereby" begin)
string(SUBSTRING "${licence}" ${begin} -1 terms)
string(STRIP "${terms}" terms)
string(REPLACE "\n\n" "\n.\n" terms "${terms}")
string(REPLACE "\n" "\n " terms "${terms}")

file(GLOB roots LIST_DIRECTORIES true "${CPACK_TEMPORARY_DIRECTORY}/*")
foreach(root IN LISTS roots)
	cmake_path(GET root FILENAME package)
	if(NOT IS_DIRECTORY "${root}/usr")
		continue()
	endif()
	file(GLOB pages "${root}/usr/share/man/man*/*.[1-8]")
	foreach(page IN LISTS pages)
		execute_process(COMMAND gzip -9nf "${page}" COMMAND_ERROR_IS_FATAL ANY)
	endforeach()
	set(doc "${root}/usr/share/doc/${package}")
	file(WRITE "${doc}/copyright" "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Tandem

Files: *
Copyright: ${owner}
License: MIT

License: MIT
 ${terms}
")
	file(WRITE "${doc}/changelog" "tandem (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What changed is told in CHANGELOG.md of the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
	execute_process(COMMAND gzip -9nf "${doc}/changelog" COMMAND_ERROR_IS_FATAL ANY)
	if(EXISTS "${source}/packaging/${package}.lintian-overrides")
		configure_file("${source}/packaging/${package}.lintian-overrides" "${root}/usr/share/lintian/overrides/${package}"
			COPYONLY)
	endif()
endforeach()
