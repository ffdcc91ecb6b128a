// What is written is read back; what is not there is never read.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tutti {
namespace {

Bytes sample() {
  ByteWriter writer;
  writer.number(std::uint8_t{200});
  writer.number(std::int32_t{-5});
  writer.number(std::numeric_limits<std::uint64_t>::max() - 1);
  writer.text("hello");
  writer.sized({});
  return std::move(writer).take();
}

TEST(Bytes, ReadsBackWhatWasWritten) {
  const Bytes bytes = sample();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint8_t>(), 200);
  EXPECT_EQ(reader.number<std::int32_t>(), -5);
  EXPECT_EQ(reader.number<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max() - 1);
  EXPECT_EQ(reader.text(5), "hello");
  EXPECT_FALSE(reader.done());
  EXPECT_TRUE(reader.sized(0).empty());
  EXPECT_TRUE(reader.done());
}

TEST(Bytes, SerializedPartsStandInTheirOrder) {
  const std::string text = "hello";
  const Bytes bytes = serialized(std::uint8_t{200}, -5, std::numeric_limits<std::uint64_t>::max() - 1, text);
  EXPECT_EQ(serialized(bytes, std::uint32_t{0}), sample());
  ByteReader reader(bytes);
  std::uint8_t first = 0;
  int second = 0;
  reader.numbers(first, second);
  EXPECT_EQ(first, 200);
  EXPECT_EQ(second, -5);
}

TEST(Bytes, IsLittleEndian) {
  ByteWriter writer;
  writer.number(std::uint32_t{0x01020304});
  EXPECT_EQ(writer.bytes(), (Bytes{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}}));
}

TEST(Bytes, EveryCutIsSeen) {
  const Bytes bytes = sample();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ByteReader reader({bytes.data(), length});
    reader.number<std::uint8_t>();
    reader.number<std::int32_t>();
    reader.number<std::uint64_t>();
    reader.text(5);
    reader.sized(0);
    EXPECT_FALSE(reader.ok()) << length;
  }
}

TEST(Bytes, AfterAMistakeNothingIsRead) {
  const Bytes bytes = sample();
  ByteReader reader(bytes);
  EXPECT_TRUE(reader.raw(bytes.size() + 1).empty());
  EXPECT_EQ(reader.number<std::uint8_t>(), 0);
  EXPECT_FALSE(reader.ok());
}

TEST(Bytes, ALengthBeyondTheBoundIsAMistake) {
  ByteWriter writer;
  writer.text("12345");
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.text(4), "");
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace tutti
