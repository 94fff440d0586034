# SPDX-License-Identifier: MIT
# Where things go. Everything lies below the prefix, also one that is given as late as "cmake --install --prefix";
# only where that is babeltrace2's own prefix are the places those in which babeltrace2 and LTTng look by themselves.
#
# Components: tandem, tandem-agent, tandem-syscalls (one package each), agent-dynamic and agent-static (of which the
# package tandem-agent gets one), doc-prefix (what packages have in another shape).
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tandem)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
	OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

pkg_get_variable(BT2_PREFIX babeltrace2 prefix)
pkg_get_variable(BT2_LIBDIR babeltrace2 libdir)
set(TANDEM_PLUGIN_DIR "" CACHE PATH
	"Where the babeltrace2 plugin goes; empty: babeltrace2's own folder if the prefix is babeltrace2's, else PREFIX/LIBDIR/babeltrace2/plugins")

# Relative to the prefix unless it was set.
if(TANDEM_PLUGIN_DIR)
	set(TANDEM_PLUGIN_DESTINATION "${TANDEM_PLUGIN_DIR}")
elseif(CMAKE_INSTALL_PREFIX STREQUAL BT2_PREFIX)
	file(RELATIVE_PATH TANDEM_PLUGIN_DESTINATION "${BT2_PREFIX}" "${BT2_LIBDIR}/babeltrace2/plugins")
else()
	set(TANDEM_PLUGIN_DESTINATION "${CMAKE_INSTALL_LIBDIR}/babeltrace2/plugins")
endif()
cmake_path(ABSOLUTE_PATH TANDEM_PLUGIN_DESTINATION BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE
	OUTPUT_VARIABLE TANDEM_PLUGIN_FULL_DIR)

# tandem_install_configured(TEMPLATE FILE COMPONENT DESTINATION): @prefix@ and the like are known when installing only.
function(tandem_install_configured template file component destination)
	cmake_path(ABSOLUTE_PATH template OUTPUT_VARIABLE from)
	install(CODE "
		set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
		set(bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
		set(sbindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_SBINDIR}\")
		set(plugindir \"${TANDEM_PLUGIN_DESTINATION}\")
		cmake_path(ABSOLUTE_PATH plugindir BASE_DIRECTORY \"\${prefix}\")
		set(version \"${PROJECT_VERSION}\")
		configure_file(\"${from}\" \"${CMAKE_CURRENT_BINARY_DIR}/install/${file}\" @ONLY)
		file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${destination}\" TYPE FILE
			FILES \"${CMAKE_CURRENT_BINARY_DIR}/install/${file}\")"
		COMPONENT ${component})
endfunction()
