# The Python package on the library of this build; skipped where no Python has numpy. A sanitizer would have to be loaded
# before Python is.
if(TUTTI_SANITIZE)
  return()
endif()
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(python_environment "TUTTI_TUNE=off;OPENBLAS_NUM_THREADS=1;OMP_NUM_THREADS=1;PYTHONDONTWRITEBYTECODE=1"
                       "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:tutti>" "PYTHONPATH=${PROJECT_SOURCE_DIR}/python:${CMAKE_CURRENT_SOURCE_DIR}/python")

foreach(test arrays calls collectives counts docs ends errors lifetimes messages operators perf torch torch_benchmark
             torch_training)
  add_test(NAME python_${test}_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/run
                                            ${CMAKE_CURRENT_SOURCE_DIR}/python/${test}_test.py)
  set_tests_properties(python_${test}_test PROPERTIES LABELS multiprocess PROCESSORS 2 TIMEOUT 600 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${python_environment}")
endforeach()

# Of these also with what is freed poisoned.
add_library(poison MODULE support/poison.cpp)
target_compile_options(poison PRIVATE -fno-builtin)
set_target_properties(poison PROPERTIES IS_TEST ON)
foreach(test calls lifetimes messages operators torch)
  add_test(NAME python_${test}_poisoned COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/run
                                                ${CMAKE_CURRENT_SOURCE_DIR}/python/${test}_test.py)
  set_tests_properties(python_${test}_poisoned PROPERTIES LABELS multiprocess PROCESSORS 2 TIMEOUT 600 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${python_environment};LD_PRELOAD=$<TARGET_FILE:poison>;PYTHONMALLOC=malloc")
endforeach()

foreach(test gpu torch_cuda)
  add_test(NAME python_${test}_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/run
                                            ${CMAKE_CURRENT_SOURCE_DIR}/python/${test}_test.py $<TARGET_FILE:fake_cuda>)
  set_tests_properties(python_${test}_test PROPERTIES LABELS multiprocess PROCESSORS 2 TIMEOUT 600 SKIP_RETURN_CODE 77
                       ENVIRONMENT "${python_environment}")
endforeach()

# A wheel of this build's library, installed where nothing else of tutti is; needs a package index.
add_test(NAME python_wheel COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/wheel_test.py $<TARGET_FILE:tutti>)
set_tests_properties(python_wheel PROPERTIES LABELS install TIMEOUT 600 SKIP_RETURN_CODE 77
                     ENVIRONMENT "TUTTI_TUNE=off;PYTHONDONTWRITEBYTECODE=1")

# PyTorch's own tests, most of which are for gloo by name, so that tutti stands in for it; at night under its own name too.
add_test(NAME python_torch_suite COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/run
                                         ${CMAKE_CURRENT_SOURCE_DIR}/python/torch_suite.py in-place-of-gloo)
add_test(NAME python_torch_suite_named COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/run
                                               ${CMAKE_CURRENT_SOURCE_DIR}/python/torch_suite.py tutti)
set_tests_properties(python_torch_suite python_torch_suite_named PROPERTIES LABELS multiprocess PROCESSORS 2 TIMEOUT 900
                     SKIP_RETURN_CODE 77 ENVIRONMENT "${python_environment}")
set_tests_properties(python_torch_suite_named PROPERTIES LABELS nightly)

# The same on the newest torch of the package index, beside gloo.
add_test(NAME python_newest_torch COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/newest_torch.py
                                          ${PROJECT_BINARY_DIR}/newest_torch $<TARGET_FILE:fake_cuda>)
set_tests_properties(python_newest_torch PROPERTIES LABELS nightly PROCESSORS 2 TIMEOUT 7200 SKIP_RETURN_CODE 77
                     ENVIRONMENT "${python_environment}")

# Two processes on one GPU; skipped where there is none.
add_test(NAME python_torch_gpu_ddp COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/python/torch_gpu_ddp.py
                                           ${PROJECT_BINARY_DIR}/newest_torch)
set_tests_properties(python_torch_gpu_ddp PROPERTIES LABELS nightly PROCESSORS 2 TIMEOUT 3600 SKIP_RETURN_CODE 77
                     ENVIRONMENT "${python_environment}")
set_tests_properties(python_newest_torch python_torch_gpu_ddp PROPERTIES RESOURCE_LOCK newest_torch)
