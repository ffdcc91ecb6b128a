# How bytes move: flags, call descriptors, areas, segments, descriptors, fifos; within one process and between several.
foreach(part flag call_descriptor rank_area segment free_memory fd_server)
  tutti_test(${part}_test SOURCES unit/${part}_test.cpp LIBS tutti_transport LABELS unit)
endforeach()
tutti_test(socket_test SOURCES unit/socket_test.cpp LIBS tutti_transport tutti_sim LABELS unit)
tutti_test(fifo_test SOURCES contract/fifo_test.cpp LIBS tutti_transport tutti_sim LABELS contract)
tutti_test(broken_peer_test SOURCES contract/broken_peer_test.cpp LIBS tutti_transport LABELS contract)
tutti_test(transport_test SOURCES multiprocess/transport_test.cpp LIBS tutti_transport LABELS multiprocess)
tutti_test(socket_run_test SOURCES simulated/socket_run_test.cpp LIBS tutti_algorithms tutti_exec tutti_sim LABELS simulated)
