// The table of driver functions: what is said when there is none, or it fails; and what memory and streams are.
#include "cuda/driver.h"

#include <gtest/gtest.h>

#include <array>

#include "cuda/pointer.h"
#include "cuda/resources.h"
#include "support/cuda_user.h"

namespace tutti::cuda {
namespace {

using testing::CudaUser;
using testing::fake_cuda;

constexpr const char* library = TUTTI_FAKE_CUDA;

std::shared_ptr<const Driver> driver() {
  DriverSlot slot(library);
  auto loaded = slot.get();
  EXPECT_TRUE(loaded) << loaded.error().text();
  return *loaded;
}

SharedGpu gpu(int ordinal = 0) {
  auto opened = Gpu::open(driver(), ordinal);
  EXPECT_TRUE(opened) << opened.error().text();
  return *opened;
}

class CudaDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_cuda(library).set_devices(2);
    fake_cuda(library).forgive();
  }
  void TearDown() override { EXPECT_EQ(fake_cuda(library).live(), before_); }
  const testing::FakeCuda::Live before_ = fake_cuda(library).live();
};

void expect_refused(const auto& result, Code code, const std::string& words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code);
  EXPECT_NE(result.error().text().find(words), std::string::npos) << result.error().text();
}

TEST_F(CudaDriver, NoLibraryIsSaidOnceAndEverAfter) {
  DriverSlot slot("/nowhere/libcuda.so.1");
  for (int i = 0; i < 2; ++i) expect_refused(slot.get(), Code::cuda, "no CUDA driver: /nowhere/libcuda.so.1");
  EXPECT_EQ(slot.if_loaded(), nullptr);
}

TEST_F(CudaDriver, IsNotLoadedByAskingWhetherItIs) {
  DriverSlot absent("libm-nobody-has-loaded.so.6");
  EXPECT_EQ(absent.if_loaded(), nullptr);
  DriverSlot present(library);  // this test has
  EXPECT_NE(present.if_loaded(), nullptr);
}

TEST_F(CudaDriver, TooOld) {
  DriverSlot slot("libm.so.6");
  expect_refused(slot.get(), Code::cuda, "older than CUDA 12.0");
}

TEST_F(CudaDriver, NothingWorksOrNoGpu) {
  fake_cuda(library).fail("cuInit", status::no_device);
  DriverSlot slot(library);
  expect_refused(slot.get(), Code::cuda, "cuInit: CUDA_ERROR_NO_DEVICE (100): ");
  fake_cuda(library).set_devices(0);
  DriverSlot none(library);
  expect_refused(none.get(), Code::cuda, "no GPU that this process may use");
}

TEST_F(CudaDriver, StickyErrorsAreSaidToBe) {
  const auto loaded = driver();
  for (const Status sticky :
       {status::illegal_address, status::launch_failed, status::assert_failed, status::hardware_stack_error,
        status::hardware_stack_error + 3, status::ecc_uncorrectable}) {
    EXPECT_TRUE(is_sticky(sticky)) << sticky;
    EXPECT_NE(loaded->error(sticky, "cuX").text().find("by this process any more"), std::string::npos);
  }
  for (const Status other : {status::success, status::invalid_value, status::out_of_memory, status::not_ready,
                             status::cooperative_launch_too_large, status::stream_capture_unsupported}) {
    EXPECT_FALSE(is_sticky(other)) << other;
    EXPECT_EQ(loaded->error(other, "cuX").text().find("by this process any more"), std::string::npos);
  }
}

TEST_F(CudaDriver, NoSuchGpu) {
  expect_refused(Gpu::open(driver(), 2), Code::invalid_argument, "GPU 2 is none of this process's (0 to 1)");
  expect_refused(Gpu::open(driver(), -1), Code::invalid_argument, "GPU -1 is none");
}

TEST_F(CudaDriver, KindsOfPointers) {
  CudaUser user(library, 1);
  const auto loaded = driver();
  int on_stack = 0;
  std::byte* const device = user.allocate(1000);
  std::byte* const managed = user.allocate_managed(1000);
  struct Case {
    const void* at;
    MemoryKind kind;
    int device;
  };
  for (const Case& one :
       {Case{&on_stack, MemoryKind::host, -1}, Case{nullptr, MemoryKind::host, -1}, Case{device, MemoryKind::device, 1},
        Case{device + 999, MemoryKind::device, 1}, Case{managed + 1, MemoryKind::managed, 1}}) {
    auto facts = query_pointer(*loaded, one.at);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->kind, one.kind);
    EXPECT_EQ(facts->device, one.device);
  }
  // How some drivers answer for memory that they do not know.
  fake_cuda(library).fail("cuPointerGetAttributes", status::invalid_value);
  EXPECT_EQ(query_pointer(*loaded, &on_stack)->kind, MemoryKind::host);
  fake_cuda(library).fail("cuPointerGetAttributes", status::illegal_address);
  expect_refused(query_pointer(*loaded, &on_stack), Code::cuda, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(CudaDriver, BuffersOfOneCall) {
  CudaUser one(library, 1);
  CudaUser zero(library, 0);
  const auto on = gpu(0);
  std::array<int, 4> host{};
  const std::byte* const device = zero.allocate(64);
  const std::byte* const managed = zero.allocate_managed(64);
  one.make_current();
  const std::byte* const other = one.allocate(64);
  for (const auto& [send, recv] : {std::pair<const void*, const void*>{device, device},
                                   {device, device + 8},
                                   {device, managed},
                                   {managed, nullptr},
                                   {nullptr, device}}) {
    auto found = on_gpu(*on, send, recv);
    ASSERT_TRUE(found);
    EXPECT_TRUE(*found);
  }
  EXPECT_FALSE(*on_gpu(*on, host.data(), host.data() + 1));
  EXPECT_FALSE(*on_gpu(*on, nullptr, host.data()));
  expect_refused(on_gpu(*on, host.data(), device), Code::invalid_argument,
                 "sendbuff is host memory and recvbuff is device memory");
  expect_refused(on_gpu(*on, managed, host.data()), Code::invalid_argument, "sendbuff is managed memory");
  expect_refused(on_gpu(*on, other, device), Code::invalid_argument,
                 "sendbuff is memory of GPU 1, but this rank of the communicator is on GPU 0");
  expect_refused(on_gpu(*on, device, other), Code::invalid_argument, "recvbuff is memory of GPU 1");
}

TEST_F(CudaDriver, Streams) {
  CudaUser one(library, 1);
  CudaUser zero(library, 0);
  const auto on = gpu(0);
  EXPECT_TRUE(check_stream(*on, nullptr));
  EXPECT_TRUE(check_stream(*on, reinterpret_cast<Stream>(2)));  // NOLINT: per thread
  EXPECT_TRUE(check_stream(*on, zero.stream()));
  one.make_current();
  expect_refused(check_stream(*on, one.stream()), Code::invalid_argument,
                 "stream is of GPU 1, but this rank of the communicator is on GPU 0");
  int nothing = 0;
  expect_refused(check_stream(*on, reinterpret_cast<Stream>(&nothing)), Code::invalid_argument,  // NOLINT: on purpose
                 "stream is not a cudaStream_t");
}

/// Whatever fails on the way, nothing is left behind: TearDown looks.
TEST_F(CudaDriver, WhatFailsLeavesNothing) {
  const auto on = gpu(0);
  const auto failed = [&](const char* function, auto&& make) {
    fake_cuda(library).fail(function, status::out_of_memory);
    auto current = Current::enter(*on);
    ASSERT_TRUE(current);
    expect_refused(make(), Code::cuda, std::string(function) + ": CUDA_ERROR_OUT_OF_MEMORY (2)");
  };
  failed("cuMemAlloc", [&] { return DeviceMemory::allocate(on, 100); });
  failed("cuMemHostAlloc", [&] { return PinnedMemory::allocate(on, 100); });
  failed("cuMemHostGetDevicePointer", [&] { return PinnedMemory::allocate(on, 100); });
  failed("cuStreamCreate", [&] { return OwnStream::create(on); });
  failed("cuEventCreate", [&] { return OwnEvent::create(on); });
  fake_cuda(library).fail("cuThreadExchangeStreamCaptureMode", status::invalid_value);
  expect_refused(Current::enter(*on), Code::cuda, "cuThreadExchangeStreamCaptureMode");
  Context left = nullptr;
  on->api().context_current(&left);
  EXPECT_EQ(left, nullptr);
}

}  // namespace
}  // namespace tutti::cuda
