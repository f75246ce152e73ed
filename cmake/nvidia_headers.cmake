# Where NVIDIA's headers may lie: the toolkit, or the PyPI packages of the active Python or the local
# .venv (scripts/find_libtorch.sh --install puts them there).

# trainprof_find_nvidia_header(<variable> <header> <folder of the user's> [PATH_SUFFIXES ...]): like
# find_path, but a folder that was found once may be gone by now, and an absent one may have come.
function(trainprof_find_nvidia_header variable header preferred)
  if(${variable} AND NOT EXISTS ${${variable}}/${header})
    unset(${variable} CACHE)
  endif()
  if(NOT ${variable})
    _nvidia_folders(folders)
    find_path(${variable} ${header} HINTS ${preferred} ${folders} ${ARGN})
    mark_as_advanced(${variable})
  endif()
endfunction()

function(_nvidia_folders out)
  find_package(CUDAToolkit QUIET)
  set(folders ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include /opt/cuda/include)
  # A toolkit without its compiler is not found by name: take the newest folder.
  file(GLOB toolkits /usr/local/cuda-*/include)
  list(SORT toolkits COMPARE NATURAL ORDER DESCENDING)
  list(APPEND folders ${toolkits})

  find_program(python NAMES python3 python NO_CACHE)
  if(python)
    execute_process(
      COMMAND ${python} -c "import nvidia; print(';'.join(nvidia.__path__))"
      OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  file(GLOB venv_packages ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia)
  foreach(package IN LISTS packages venv_packages)
    file(GLOB includes ${package}/*/include)
    list(APPEND folders ${includes})
  endforeach()
  set(${out} ${folders} PARENT_SCOPE)
endfunction()
