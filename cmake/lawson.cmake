# The one build helper: compiler flags and lw_library()/lw_test().
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
option(LW_WERROR "Warnings are errors" OFF)
option(LW_FUZZ "The libFuzzer targets too (clang; tests/fuzz)" OFF)
set(LW_SANITIZE "" CACHE STRING "address,undefined | thread")
find_program(LW_CCACHE ccache)
if(LW_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${LW_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LW_CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Wno-sign-conversion
                    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
                    -fno-math-errno)
# Results are defined operation by operation (docs/numerics.md).
add_compile_options(-ffp-contract=off)
if(LW_WERROR)
  add_compile_options(-Werror)
endif()
if(LW_SANITIZE)
  add_compile_options(-fsanitize=${LW_SANITIZE} -fno-omit-frame-pointer)
  # clang checks a function's type by reading the word in front of it: code that
  # was made at run time has none.
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fno-sanitize=function)
  endif()
  add_link_options(-fsanitize=${LW_SANITIZE})
endif()
# Every object tells the fuzzer where it has been, and undefined behaviour ends
# the run; only the targets link libFuzzer's main (tests/fuzz).
if(LW_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# The stages, in the order that data travels (docs/architecture.md).
set(LW_STAGES base hlo reader trace target math lib interp passes kernel fusion
              plan codegen runtime driver lab)

# lw_library(NAME SOURCES a.c b.c [LIBS other ...]): a stage of the compiler. The
# include root is src/, so that includes name the folder they reach into. LIBS
# are stages by name, or anything else that CMake links.
function(lw_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_library(lw_${name} STATIC ${A_SOURCES})
  target_include_directories(lw_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src
                                               ${PROJECT_SOURCE_DIR}/include)
  foreach(lib ${A_LIBS})
    if(lib IN_LIST LW_STAGES)
      target_link_libraries(lw_${name} PUBLIC lw_${lib})
    else()
      target_link_libraries(lw_${name} PUBLIC ${lib})
    endif()
  endforeach()
endfunction()

# lw_test(NAME SOURCES a.c LIBS hlo ...): a cmocka unit test run by ctest.
function(lw_test name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(test_${name} ${A_SOURCES})
  foreach(lib ${A_LIBS})
    target_link_libraries(test_${name} PRIVATE lw_${lib})
  endforeach()
  target_link_libraries(test_${name} PRIVATE cmocka m)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(test_${name} PRIVATE
    LW_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  add_test(NAME ${name} COMMAND test_${name})
endfunction()
