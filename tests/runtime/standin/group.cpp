// The process group "tpu_dist" of the stand-in: gloo over the bytes of the device's tensors.
//
// It has what torch_tpu's has and lacks what that lacks: reduce, a coalesced all_reduce, buffers whose sizes differ.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/csrc/utils/pybind.h>

#include "device.h"  // included, so that PyTorch's headers, which cost far more than both, are read once

namespace standin {

using namespace c10d;
using Tensors = std::vector<at::Tensor>;
using Pending = c10::intrusive_ptr<Work>;

Tensors on_host(const Tensors& tensors) {
  Tensors result;
  for (const auto& tensor : tensors) {
    TORCH_CHECK(tensor.device().type() == KIND, "tpu_dist takes tensors on a TPU, got ", tensor.device());
    result.push_back(on_host(tensor));
  }
  return result;
}

std::vector<Tensors> on_host(const std::vector<Tensors>& lists) {
  std::vector<Tensors> result;
  for (const auto& tensors : lists) result.push_back(on_host(tensors));
  return result;
}

void check_even(const std::vector<Tensors>& lists, const Tensors& own) {
  for (const auto& tensors : lists)
    for (const auto& tensor : tensors)
      TORCH_CHECK(tensor.sizes() == own.at(0).sizes(), "asymmetric input buffer sizes across ranks are not supported");
}

struct Group final : Backend {
  explicit Group(c10::intrusive_ptr<Backend> gloo)
      : Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override { return "tpu_dist"; }

  Pending broadcast(Tensors& tensors, const BroadcastOptions& options) override {
    auto host = on_host(tensors);
    return after(gloo_->broadcast(host, options), tensors);
  }
  Pending allreduce(Tensors& tensors, const AllreduceOptions& options) override {
    auto host = on_host(tensors);
    return after(gloo_->allreduce(host, options), tensors);
  }
  Pending allgather(std::vector<Tensors>& all, Tensors& own, const AllgatherOptions& options) override {
    check_even(all, own);
    auto host = on_host(all);
    auto mine = on_host(own);
    return after(gloo_->allgather(host, mine, options), all.at(0));
  }
  Pending _allgather_base(at::Tensor& all, at::Tensor& own, const AllgatherOptions& options) override {
    auto host = standin::on_host(all), mine = standin::on_host(own);
    return after(gloo_->_allgather_base(host, mine, options), {all});
  }
  Pending allgather_into_tensor_coalesced(Tensors& all, Tensors& own, const AllgatherOptions& options) override {
    for (size_t k = 0; k < all.size(); ++k) _allgather_base(all[k], own[k], options);
    return done(all);
  }
  Pending gather(std::vector<Tensors>& all, Tensors& own, const GatherOptions& options) override {
    check_even(all, own);
    auto host = on_host(all);
    auto mine = on_host(own);
    return after(gloo_->gather(host, mine, options), all.empty() ? Tensors{} : all[0]);
  }
  Pending scatter(Tensors& own, std::vector<Tensors>& all, const ScatterOptions& options) override {
    auto host = on_host(all);
    auto mine = on_host(own);
    return after(gloo_->scatter(mine, host, options), own);
  }
  Pending _reduce_scatter_base(at::Tensor& own, at::Tensor& all, const ReduceScatterOptions& options) override {
    Tensors host{standin::on_host(all).clone()};
    const bool is_mean = options.reduceOp == ReduceOp::AVG;  // which gloo does not have
    AllreduceOptions sum;
    if (!is_mean) sum.reduceOp = options.reduceOp;
    gloo_->allreduce(host, sum)->wait();
    const auto part = host[0].reshape(-1).chunk(size_)[rank_].view(own.sizes());
    standin::on_host(own).copy_(is_mean ? part / size_ : part);
    return done({own});
  }
  Pending reduce_scatter_tensor_coalesced(Tensors& own, Tensors& all, const ReduceScatterOptions& options) override {
    for (size_t k = 0; k < own.size(); ++k) _reduce_scatter_base(own[k], all[k], options);
    return done(own);
  }
  Pending alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes,
                        std::vector<int64_t>& in_sizes, const AllToAllOptions& options) override {
    auto host = standin::on_host(out), mine = standin::on_host(in);
    return after(gloo_->alltoall_base(host, mine, out_sizes, in_sizes, options), {out});
  }
  Pending send(Tensors& tensors, int to, int tag) override {
    auto host = on_host(tensors);
    return after(gloo_->send(host, to, tag), tensors);
  }
  Pending recv(Tensors& tensors, int from, int tag) override {
    auto host = on_host(tensors);
    return after(gloo_->recv(host, from, tag), tensors);
  }
  Pending barrier(const BarrierOptions&) override { return after(gloo_->barrier(BarrierOptions()), {}); }

 private:
  // What gloo has finished, as work of this device.
  static Pending after(const Pending& work, Tensors results) {
    work->wait();
    return done(std::move(results));
  }
  static Pending done(Tensors results) {
    const auto type = c10::ListType::create(c10::TensorType::get());
    auto future = c10::make_intrusive<c10::ivalue::Future>(type, std::vector<c10::Device>{c10::Device(KIND, 0)});
    future->markCompleted(c10::IValue(std::move(results)));
    return Work::create_from_future(future);
  }

  c10::intrusive_ptr<Backend> gloo_;
};

}  // namespace standin

PYBIND11_MODULE(standin_tpu, m) {
  m.def("init", &standin::init);
  m.def("default_generator", &standin::default_generator);
  m.def("group_over", [](const c10::intrusive_ptr<c10d::Backend>& gloo) -> c10::intrusive_ptr<c10d::Backend> {
    return c10::make_intrusive<standin::Group>(gloo);
  });
}
