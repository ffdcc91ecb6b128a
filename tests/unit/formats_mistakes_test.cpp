// Plans with a mistake in them: what is said of it, and where.
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "formats/plan_file.h"
#include "formats/source.h"
#include "support/edited.h"
#include "support/sample_plans.h"

namespace tutti::formats {
namespace {

using tutti::testing::edited;
using tutti::testing::Mistake;
using tutti::testing::msccl_sample;
using tutti::testing::mscclpp_sample;

/// What is wrong with a plan, from its letters to its meaning; empty: nothing.
std::string judged(const Result<Imported>& imported) {
  if (!imported) return imported.error().text();
  const auto meaning = verify(*imported);
  return meaning ? "" : meaning.error().text();
}

void expect_said(const Mistake& mistake, const std::string& said) {
  EXPECT_TRUE(said.starts_with("invalid argument: ")) << said;
  EXPECT_NE(said.find(mistake.place), std::string::npos) << said << "\nshould name " << mistake.place;
  EXPECT_NE(said.find(mistake.reason), std::string::npos) << said << "\nshould say " << mistake.reason;
}

const Mistake in_xml[] = {
    {"</algo>", "", "line 19", "not XML"},
    {"<algo ", "<plan ", "line 1", "not XML"},
    {"coll=\"allreduce\"", "coll=\"allduce\"", "line 1", "coll \"allduce\" is none of allreduce"},
    {"coll=\"allreduce\"", "coll=\"custom\"", "line 1", "coll \"custom\" is none of"},
    {"ngpus=\"2\"", "", "line 1", "<algo> has no ngpus"},
    {"ngpus=\"2\"", "ngpus=\"two\"", "line 1", "ngpus is \"two\", not a number"},
    {"ngpus=\"2\"", "ngpus=\"0\"", "line 1", "ngpus 0 is not one of 1 … 1024"},
    {"ngpus=\"2\"", "ngpus=\"99999999999999999999\"", "line 1", "is not one of 1 … 1024"},
    {"ngpus=\"2\"", "ngpus=\"3\"", "line 1", "there is no <gpu> with id 2"},
    {"nchunksperloop=\"2\"", "nchunksperloop=\"-2\"", "line 1", "nchunksperloop -2 is not one of"},
    {"nchunksperloop=\"2\"", "nchunksperloop=\"1\"", "line 4, gpu 0, tb 0, step 0",
     "srcoff 1 with cnt 1 is outside the input of 1"},
    {"coll=\"allreduce\" inplace", "coll=\"alltoall\" inplace", "line 1", "an alltoall in place"},
    {"nchunksperloop=\"2\" ngpus=\"2\" coll=\"allreduce\"", "nchunksperloop=\"3\" ngpus=\"2\" coll=\"allgather\"",
     "line 1", "not a multiple of ngpus 2"},
    {"<gpu id=\"1\"", "<gpu id=\"0\"", "line 12, gpu 0", "a second <gpu> with this id"},
    {"<gpu id=\"1\"", "<gpu id=\"2\"", "line 12", "id 2 is not one of 0 … 1"},
    {"<gpu id=\"0\"", "<cpu id=\"0\"/><gpu id=\"0\"", "line 2", "<cpu> inside <algo>, where only <gpu> belongs"},
    {"s_chunks=\"1\"", "s_chunks=\"x\"", "line 2, gpu 0", "s_chunks is \"x\", not a number"},
    {"s_chunks=\"1\"", "s_chunks=\"0\"", "line 9, gpu 0, tb 1, step 0",
     "dstoff 0 with cnt 1 is outside the scratch of 0 chunks"},
    {"<tb id=\"1\"", "<tb id=\"4\"", "line 8, gpu 0", "this <tb> is number 1, and its id says otherwise"},
    {"<tb id=\"0\" send=\"1\"", "<tb id=\"0\" send=\"0\"", "line 3, gpu 0, tb 0", "the peer is the rank itself"},
    {"<tb id=\"0\" send=\"1\"", "<tb id=\"0\" send=\"2\"", "line 3, gpu 0, tb 0", "send 2 is not one of -1 … 1"},
    {"<tb id=\"0\" send=\"1\"", "<tb id=\"0\" send=\"-1\"", "line 4, gpu 0, tb 0, step 0",
     "sends, and its tb has no peer"},
    {"recv=\"1\" chan", "recv=\"-1\" chan", "line 5, gpu 0, tb 0, step 1", "receives, and its tb has no peer"},
    {"<tb id=\"1\" send=\"-1\"", "<tb id=\"1\" send=\"1\"", "line 8, gpu 0",
     "tb 0 and tb 1 both send to gpu 1 on channel 0"},
    {"<step s=\"1\"", "<step s=\"2\"", "line 5, gpu 0, tb 0, step 1", "s contradicts the order"},
    {"type=\"rrcs\"", "type=\"rrx\"", "line 5, gpu 0, tb 0, step 1", "type \"rrx\" is none of"},
    {"srcbuf=\"i\" srcoff=\"1\"", "srcbuf=\"q\" srcoff=\"1\"", "line 4, gpu 0, tb 0, step 0", "srcbuf is \"q\""},
    {"srcoff=\"1\"", "srcoff=\"7\"", "line 4, gpu 0, tb 0, step 0",
     "srcoff 7 with cnt 1 is outside the input of 2 chunks"},
    {"cnt=\"1\"", "cnt=\"2147483647\"", "line 4, gpu 0, tb 0, step 0", "cnt 2147483647 is not one of 1 … 65536"},
    {"cnt=\"1\"", "cnt=\"2\"", "line 4, gpu 0, tb 0, step 0", "srcoff 1 with cnt 2 is outside"},
    {"depid=\"0\" deps=\"1\"", "depid=\"7\" deps=\"1\"", "line 9, gpu 0, tb 1, step 0", "depid 7: there is no such tb"},
    {"depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"9\"", "line 9, gpu 0, tb 1, step 0", "deps 9: tb 0 has 3 steps"},
    {"depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"-1\"", "line 9, gpu 0, tb 1, step 0", "one of depid and deps is -1"},
    {"hasdep=\"1\"", "hasdep=\"0\"", "line 9, gpu 0, tb 1, step 0", "waits forever: tb 0 has no hasdep"},
    {"depid=\"-1\" deps=\"-1\" hasdep=\"1\"", "depid=\"0\" deps=\"1\" hasdep=\"1\"", "line 5, gpu 0, tb 0, step 1",
     "waits for itself"},
    {"depid=\"0\" deps=\"1\"", "depid=\"-1\" deps=\"-1\"", "gpu 0, tb", "and nothing orders the two"},
    {"type=\"s\" srcbuf=\"i\" srcoff=\"0\"", "type=\"nop\" srcbuf=\"i\" srcoff=\"0\"", "gpu 0, tb 0, step 2",
     "receives from gpu 1, which has no matching send"},
    {"type=\"r\"", "type=\"nop\"", "gpu 1, tb 0, step 1", "sends to gpu 0, which has no matching receive"},
    {"type=\"s\"", "type=\"rcs\"", "gpu 0, tb 0, step", "receives from gpu 1, which has no matching send"},
    {"type=\"s\" srcbuf=\"i\" srcoff=\"1\"", "type=\"s\" srcbuf=\"s\" srcoff=\"0\"", "line 4, gpu 0, tb 0, step 0",
     "before anything is written to it"},
    {"type=\"s\" srcbuf=\"i\" srcoff=\"1\"", "type=\"s\" srcbuf=\"i\" srcoff=\"0\"", "line 15, gpu 1, tb 0, step 1",
     "combines input chunks of two parts"},
    {"coll=\"allreduce\"", "coll=\"broadcast\"", "line 14, gpu 1, tb 0, step 0", "before anything is written to it"},
    {"type=\"rrcs\"", "type=\"rcs\"", "[peer 0]",
     "output block 0 ends wrong: the contribution of rank 0 is missing: no transfer reads it; the block was last "
     "written "
     "at line 5, gpu 0, tb 0, step 1"},
    {"</gpu>", "<copy i_off=\"7\" o_off=\"0\"/></gpu>", "line 11, gpu 0, copy 0",
     "i_off 7 is outside the input of 2 chunks"},
    {"</gpu>", "<copy i_off=\"0\" o_off=\"2\"/></gpu>", "line 11, gpu 0, copy 0",
     "o_off 2 is outside the output of 2 chunks"},
    {"</gpu>", "<copy i_off=\"0\"/></gpu>", "line 11, gpu 0", "<copy> has no o_off"},
    {"</gpu>", "<cpy/></gpu>", "line 11, gpu 0", "<cpy> inside <gpu>, where only <tb> and <copy> belong"},
};

TEST(Mistakes, OfXmlAreNamed) {
  ASSERT_EQ(judged(import_msccl(msccl_sample)), "");
  for (const Mistake& mistake : in_xml) {
    SCOPED_TRACE(std::string(mistake.to));
    expect_said(mistake, judged(import_msccl(edited(msccl_sample, mistake.from, mistake.to))));
  }
}

const Mistake in_json[] = {
    {"\"collective\":", "\"collective\"", "line 2 (byte", "not JSON"},
    {"18446744073709551615\n}", "1", "line", "not JSON"},
    {"\"name\": \"halves\"", "\"name\": 7", "name", "is not a string"},
    {"\"name\": \"halves\", ", "", "the file", "has no \"name\""},
    {"\"allreduce\"", "\"sendrecv\"", "collective", "\"sendrecv\" is none of allreduce"},
    {"\"inplace\": true", "\"inplace\": 1", "inplace", "neither true nor false"},
    {"\"inplace\": true", "\"inplace\": true, \"inplace\": false", "the file", "\"inplace\" occurs twice"},
    {"\"gpus\": [", "\"gpus\": 3, \"others\": [", "gpus", "is not an array"},
    {"\"gpus\": [", "\"gpus\": [], \"others\": [", "gpus", "0 gpus; there may be"},
    {"\"id\": 1, \"input_chunks\"", "\"id\": 5, \"input_chunks\"", "gpus[1].id", "this is gpu 1"},
    {"\"input_chunks\": 2", "\"input_chunks\": -2", "gpus[0].input_chunks", "-2 is not one of 0 … 65536"},
    {"\"input_chunks\": 2", "\"input_chunks\": 2.5", "gpus[0].input_chunks", "is not a whole number"},
    {"\"scratch_chunks\": 1,", "", "gpus[0]", "has no \"scratch_chunks\""},
    {"\"connected_to\": [1]", "\"connected_to\": [2]", "gpus[0].channels[0].connected_to[0]", "2 is not one of 0 … 1"},
    {"\"connected_to\": [1]", "\"connected_to\": [0]", "gpus[0].channels[0].connected_to[0]",
     "a channel of a rank to itself"},
    {"\"channel_type\": \"memory\"", "\"channel_type\": \"pigeon\"", "gpus[0].channels[0].channel_type",
     "\"pigeon\" is none of"},
    {"\"rank\": 1, \"type\"", "\"rank\": 0, \"type\"", "gpus[0].remote_buffers[0].rank",
     "a remote buffer of the rank itself"},
    {"\"type\": \"i\", \"access", "\"type\": \"x\", \"access", "gpus[0].remote_buffers[0].type",
     "buffer \"x\" is none of i, o, s"},
    {"{\"id\": 0,\n        \"channels\"", "{\"id\": 3,\n        \"channels\"", "gpus[0].threadblocks[0].id",
     "this is thread block 0"},
    {"\"channel_ids\": [0]}],", "\"channel_ids\": [4]}],", "gpus[0].threadblocks[0].channels[0].channel_ids[0]",
     "4, and there are 1 to choose from"},
    {"\"remote_buffer_ids\": [0]", "\"remote_buffer_ids\": [1]", "remote_buffer_ids[0]", "1, and there are 1"},
    {"\"name\": \"nop\"", "\"name\": \"nope\"", "gpus[0].threadblocks[0].ops[3].name", "\"nope\" is not an operation"},
    {"\"name\": \"nop\"", "\"name\": \"ppkt\"", "gpus[0].threadblocks[0].ops[3]", "packets are not supported"},
    {"\"name\": \"nop\"", "\"name\": \"glres\"", "gpus[0].threadblocks[0].ops[3]", "switch channels are not supported"},
    {"\"name\": \"nop\"", "\"name\": \"pipeline\"", "gpus[0].threadblocks[0].ops[3]", "pipelines are not supported"},
    {"\"name\": \"nop\"", "\"name\": \"sem_acquire\"", "gpus[0].threadblocks[0].ops[3]",
     "semaphores are not supported"},
    {"\"name\": \"nop\"", "\"tbg_info\": {\"tb_id\": 0, \"tbg_size\": 2}, \"name\": \"nop\"",
     "gpus[0].threadblocks[0].ops[3].tbg_info", "thread-block groups"},
    {"\"index\": 0, \"size\": 1", "\"index\": 2, \"size\": 1", "gpus[0].threadblocks[0].ops[2].src_buff[0].index",
     "2 with size 1 is outside the input of rank 0"},
    {"\"index\": 0, \"size\": 1", "\"index\": 0, \"size\": 2", "gpus[0].threadblocks[0].ops[2]",
     "combines 1 chunks with 2"},
    {"\"index\": 0, \"size\": 1", "\"index\": 0, \"size\": 0", "src_buff[0].size", "0 is not one of 1"},
    {"\"buffer_id\": 0", "\"buffer_id\": 3", "ops[2].src_buff[1].buffer_id", "3, and there are 1"},
    {"{\"buffer_id\": 0, ", "{", "gpus[0].threadblocks[0].ops[2].src_buff[1]",
     "has neither \"type\" nor \"buffer_id\""},
    {"\"dst_buff\": [{\"type\": \"i\", \"index\": 0, \"size\": 1}, {\"buffer_id\": 0, \"index\": 0, \"size\": 1}]",
     "\"dst_buff\": []", "ops[2]", "reduces nothing, or into nothing"},
    {"\"src_buff\": [{\"type\": \"i\", \"index\": 1, \"size\": 1}], \"dst_buff\": [{\"type\": \"s\"",
     "\"src_buff\": [], \"dst_buff\": [{\"type\": \"s\"", "threadblocks[1].ops[1]", "0 sources for 1 destinations"},
    {"\"num_threadblocks\": 2", "\"num_threadblocks\": 3", "gpus[0].threadblocks[1].ops[0].num_threadblocks",
     "2, and another thread block says 3"},
    {"{\"name\": \"barrier\", \"barrier_id\": 0, \"num_threadblocks\": 2},", "", "gpus[0].threadblocks[0].ops[6]",
     "the barrier is for 2 thread blocks, and 1 come"},
    {"{\"name\": \"wait\", \"channel_ids\": [0], \"channel_type\": \"memory\"},", "", "gpus[1].threadblocks[0].ops[5]",
     "signals rank 0, which never waits for it"},
    {"{\"name\": \"signal\", \"channel_ids\": [0], \"channel_type\": \"memory\"},", "",
     "gpus[1].threadblocks[0].ops[6]", "waits for a signal of rank 0 that never comes"},
    {"\"name\": \"signal\"", "\"name\": \"rlxsignal\"", "gpus[0].threadblocks[0].ops[2]",
     "writes a chunk of rank 1, which may have left the call by then"},
    {"\"name\": \"put\"", "\"name\": \"nop\"", "[peer 0]",
     "output block 1 ends wrong: the contribution of rank 1 is missing: it came to output "
     "block 1 "
     "of rank 1 at gpus[1].threadblocks[0].ops[2], and not from there to rank 0"},
};

TEST(Mistakes, OfJsonAreNamed) {
  ASSERT_EQ(judged(import_mscclpp(mscclpp_sample)), "");
  for (const Mistake& mistake : in_json) {
    SCOPED_TRACE(std::string(mistake.to));
    expect_said(mistake, judged(import_mscclpp(edited(mscclpp_sample, mistake.from, mistake.to))));
  }
}

TEST(Mistakes, OfMeaningAreNamed) {
  const std::string gathers =
      "<algo name='' ngpus='1' coll='allgather' nchunksperloop='2'><gpu id='0' s_chunks='1'><tb id='0' send='-1' "
      "recv='-1' chan='0'>STEPS</tb></gpu></algo>";
  const auto steps = [&](std::string_view text) { return edited(gathers, "STEPS", text); };
  const auto step = [](int s, std::string_view type, std::string_view src, std::string_view dst) {
    return "<step s='" + std::to_string(s) + "' type='" + std::string(type) + "' srcbuf='" +
           std::string(src.substr(0, 1)) + "' srcoff='" + std::string(src.substr(1)) + "' dstbuf='" +
           std::string(dst.substr(0, 1)) + "' dstoff='" + std::string(dst.substr(1)) + "' cnt='1'/>";
  };
  const std::string right = step(0, "cpy", "i0", "o0") + step(1, "cpy", "i1", "o1");
  EXPECT_EQ(judged(import_msccl(steps(right))), "");
  expect_said({"", "", "gpu 0, tb 0, step 2", "reduces, and all_gather does not"},
              judged(import_msccl(steps(right + step(2, "re", "i1", "o0")))));
  expect_said({"", "", "[peer 0]", "output block 1 ends wrong"},
              judged(import_msccl(steps(step(0, "cpy", "i0", "o0")))));
  expect_said({"", "", "[peer 0]", "ends wrong"},
              judged(import_msccl(steps(step(0, "cpy", "i1", "o0") + step(1, "cpy", "i0", "o1")))));
}

TEST(Mistakes, OfSizeAreRefusedAtOnce) {
  const std::string large(file_bytes_max + 1, ' ');
  EXPECT_NE(judged(import_msccl(large)).find("larger than 16 MiB"), std::string::npos);
  EXPECT_NE(judged(import_mscclpp(large)).find("larger than 16 MiB"), std::string::npos);
  EXPECT_NE(judged(import_mscclpp(std::string(100000, '['))).find("levels deep"), std::string::npos);
  std::string many = "[0";
  for (int i = 0; i < 1 << 20; ++i) many += ",0";
  EXPECT_NE(judged(import_mscclpp(many + "]")).find("more than 1048576 values"), std::string::npos);
  std::string names = "{\"0\":0";
  for (int i = 1; i < 300'000; ++i) names += ",\"" + std::to_string(i) + "\":0";
  EXPECT_NE(judged(import_mscclpp(names + "}")).find("an object of more than 1024 names"), std::string::npos);

  // A few lines that stand for very much.
  const std::string wide =
      edited(edited(msccl_sample, "nchunksperloop=\"2\"", "nchunksperloop=\"65536\""), "ngpus=\"2\"", "ngpus=\"1024\"");
  EXPECT_NE(judged(import_msccl(wide)).find("there is no <gpu>"), std::string::npos);
  std::string gpus;
  for (int i = 0; i < 1024; ++i)
    gpus += "<gpu id=\"" + std::to_string(i) + "\" i_chunks=\"0\" o_chunks=\"0\" s_chunks=\"0\"/>\n";
  const std::string head = "<algo name=\"\" ngpus=\"1024\" coll=\"allreduce\" nchunksperloop=\"65536\">";
  EXPECT_NE(judged(import_msccl(head + gpus + "</algo>")).find("chunks in all buffers of all ranks, more than"),
            std::string::npos);
}

TEST(Mistakes, LeaveNoHalfReadFile) {
  const std::string xml = msccl_sample, json = mscclpp_sample;
  int refused = 0;
  for (std::size_t end = 0; end + 2 < xml.size(); end += 7)
    refused += judged(import_msccl(xml.substr(0, end))).empty() ? 0 : 1;
  EXPECT_EQ(refused, static_cast<int>((xml.size() - 2 + 6) / 7));
  refused = 0;
  for (std::size_t end = 0; end + 2 < json.size(); end += 7)
    refused += judged(import_mscclpp(json.substr(0, end))).empty() ? 0 : 1;
  EXPECT_EQ(refused, static_cast<int>((json.size() - 2 + 6) / 7));
}

}  // namespace
}  // namespace tutti::formats
