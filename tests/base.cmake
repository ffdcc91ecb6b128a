# The ground: errors, settings, log, clock and sockets.
tutti_test(base_test SOURCES unit/blocked_signal_test.cpp unit/error_test.cpp unit/file_test.cpp unit/markup_test.cpp unit/bytes_test.cpp unit/system_test.cpp unit/config_test.cpp
                             unit/log_test.cpp unit/line_writer_test.cpp unit/descriptors_test.cpp unit/page_kind_test.cpp unit/printable_test.cpp unit/host_test.cpp unit/interface_choice_test.cpp LIBS tutti_base LABELS unit)
target_compile_definitions(base_test PRIVATE TUTTI_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
