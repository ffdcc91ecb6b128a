// Small plans of the formats that are read, written by hand.
#pragma once

namespace tutti::testing {

/// All-reduce of two ranks in place: each sums one chunk and sends it back.
inline constexpr const char* msccl_sample =
    R"(<algo name="exchange" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="2" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="0" deps="1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)";

/// The same by reading from the peer's memory and storing into it; then a barrier between two thread blocks.
inline constexpr const char* mscclpp_sample = R"({
  "name": "halves", "collective": "allreduce", "protocol": "Simple", "inplace": true, "reuse_resources": false,
  "gpus": [
    {"id": 0, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 1,
     "channels": [{"channel_type": "memory", "connected_to": [1]}],
     "remote_buffers": [{"rank": 1, "type": "i", "access_channel_types": ["memory"]}],
     "semaphores": [],
     "threadblocks": [
       {"id": 0,
        "channels": [{"channel_type": "memory", "channel_ids": [0]}],
        "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
        "ops": [
          {"name": "rlxsignal", "channel_ids": [0], "channel_type": "memory"},
          {"name": "rlxwait", "channel_ids": [0], "channel_type": "memory"},
          {"name": "rres", "channel_type": "memory", "reduce_op": "sum",
           "src_buff": [{"type": "i", "index": 0, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}],
           "dst_buff": [{"type": "i", "index": 0, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}]},
          {"name": "nop"},
          {"name": "signal", "channel_ids": [0], "channel_type": "memory"},
          {"name": "wait", "channel_ids": [0], "channel_type": "memory"},
          {"name": "barrier", "barrier_id": 0, "num_threadblocks": 2}
        ]},
       {"id": 1,
        "ops": [
          {"name": "barrier", "barrier_id": 0, "num_threadblocks": 2},
          {"name": "copy", "src_buff": [{"type": "i", "index": 1, "size": 1}], "dst_buff": [{"type": "s", "index": 0, "size": 1}]}
        ]}
     ]},
    {"id": 1, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 0,
     "channels": [{"channel_type": "memory", "connected_to": [0]}],
     "remote_buffers": [{"rank": 0, "type": "i", "access_channel_types": ["memory"]}],
     "semaphores": [],
     "threadblocks": [
       {"id": 0,
        "channels": [{"channel_type": "memory", "channel_ids": [0]}],
        "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
        "ops": [
          {"name": "rlxsignal", "channel_ids": [0], "channel_type": "memory"},
          {"name": "rlxwait", "channel_ids": [0], "channel_type": "memory"},
          {"name": "rre", "channel_type": "memory", "reduce_op": "sum",
           "src_buff": [{"type": "i", "index": 1, "size": 1}, {"buffer_id": 0, "index": 1, "size": 1}],
           "dst_buff": [{"type": "i", "index": 1, "size": 1}]},
          {"name": "put", "channel_type": "memory",
           "src_buff": [{"type": "i", "index": 1, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 1, "size": 1}]},
          {"name": "flush", "channel_ids": [0], "channel_type": "memory"},
          {"name": "signal", "channel_ids": [0], "channel_type": "memory"},
          {"name": "wait", "channel_ids": [0], "channel_type": "memory"}
        ]}
     ]}
  ],
  "num_threads_per_block": 1024, "use_double_scratch_buffer": false, "buffer_alignment": 16,
  "min_message_size": 0, "max_message_size": 18446744073709551615
}
)";

}  // namespace tutti::testing
