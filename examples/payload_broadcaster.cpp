// SPDX-License-Identifier: Apache-2.0
// A ros2_control broadcaster that weighs: state interfaces in, in its update the estimator that `mbse export-c zx200
// --estimator -o zx200_c` wrote, `payload` (mbse_ros/msg/PayloadEstimate) out.  For another machine replace zx200 and
// ZX200 by its name.  How to build, load and set it: docs/integration.md, section ros2_control.
//
// Parameters: `samples`, state interfaces in the order of ZX200_CHANNEL_*, in m, rad, Pa; `commands`, those that say
// what the valves are given, in the order of ZX200_COMMAND_*, in V.  The rate must be ZX200_RATE (`update_rate`).
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/controller_interface.hpp"
#include "controller_interface/helpers.hpp"
#include "mbse_ros/msg/fault.hpp"
#include "mbse_ros/msg/payload_estimate.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"
#include "realtime_tools/realtime_publisher.hpp"

#include "zx200.h"

namespace mbse_examples
{
using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;
using mbse_ros::msg::Fault;
using mbse_ros::msg::PayloadEstimate;

struct Meaning
{
  uint8_t status;       // of the message
  const char * reason;
  uint32_t faults;      // what the reason says, as bits
};

// What the statuses of the C are in the message. Whatever is not known here is no mass.
Meaning meaning_of(int status)
{
  switch (status) {
    case ZX200_UPDATING: return {PayloadEstimate::UPDATING, "", 0};
    case ZX200_TOO_SLOW: return {PayloadEstimate::TOO_SLOW, "too slow", 0};
    case ZX200_WAITING: return {PayloadEstimate::TOO_SLOW, "moving, but not for long enough", 0};
    case ZX200_NOT_OBSERVABLE: return {PayloadEstimate::NOT_OBSERVABLE, "the mass does not show here", 0};
    case ZX200_OUTSIDE_STROKE: return {PayloadEstimate::OUTSIDE_STROKE, "at an end of a stroke", 0};
    case ZX200_ACCELERATING: return {PayloadEstimate::ACCELERATING, "accelerates too much", 0};
    case ZX200_IMPLAUSIBLE: return {PayloadEstimate::IMPLAUSIBLE, "no mass explains it", Fault::LIMITS};
    case ZX200_CHANGING: return {PayloadEstimate::CHANGING, "the load changes", Fault::LOAD_CHANGES};
    case ZX200_CONTACT: return {PayloadEstimate::CONTACT, "it touches something", Fault::OUTSIDE_FORCE};
    case ZX200_CONTRADICTED: return {PayloadEstimate::CONTACT, "samples contradict the model", Fault::OUTSIDE_FORCE};
    default: return {PayloadEstimate::NO_DATA, "the observer is starting, coasting or lost", Fault::DOUBTED};
  }
}

class PayloadBroadcaster : public controller_interface::ControllerInterface
{
public:
  CallbackReturn on_init() override
  {
    auto_declare<std::vector<std::string>>("samples", {});
    auto_declare<std::vector<std::string>>("commands", {});
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    if (!named("samples", ZX200_CHANNELS) || !named("commands", ZX200_COMMANDS)) {
      return CallbackReturn::ERROR;
    }
    if (get_update_rate() != ZX200_RATE) {
      RCLCPP_ERROR(
        get_node()->get_logger(), "update_rate: got %u Hz, expected %u Hz: set it, or export with --rate %u",
        get_update_rate(), unsigned{ZX200_RATE}, get_update_rate());
      return CallbackReturn::ERROR;
    }
    publisher_ = std::make_unique<Publisher>(
      get_node()->create_publisher<PayloadEstimate>("payload", rclcpp::QoS(10)));
    message_.header.frame_id = ZX200_MACHINE;
    message_.machine = ZX200_FINGERPRINT;
    message_.low_passed = NAN;          // the C gives none
    return CallbackReturn::SUCCESS;
  }

  InterfaceConfiguration command_interface_configuration() const override
  {
    return {interface_configuration_type::NONE, {}};
  }

  InterfaceConfiguration state_interface_configuration() const override
  {
    return {interface_configuration_type::INDIVIDUAL, names_};
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    ordered_.clear();
    if (!controller_interface::get_ordered_interfaces(state_interfaces_, names_, "", ordered_)) {
      RCLCPP_ERROR(get_node()->get_logger(), "%zu of %zu state interfaces are there", ordered_.size(), names_.size());
      return CallbackReturn::ERROR;
    }
    zx200_init(&estimator_);
    message_.samples = message_.sequence = 0;
    first_ = true;
    std::fill_n(input_.command, ZX200_COMMANDS, NAN);
    output_ = {};
    output_.status = ZX200_NO_DATA;
    output_.held_mass = output_.held_stddev = output_.held_lower = output_.held_upper = output_.raw = NAN;
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    ordered_.clear();
    return CallbackReturn::SUCCESS;
  }

  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) override
  {
    if (!first_ && period.seconds() * ZX200_RATE > 1.5) {
      zx200_pause(&estimator_, period.seconds());   // missed ticks: the motion begins again
    }
    first_ = false;
    for (size_t i = 0; i < ZX200_CHANNELS; ++i) {
      input_.sample[i] = value_of(i);
    }
    bool commanded = true;
    for (size_t i = 0; i < ZX200_COMMANDS; ++i) {
      const double volts = value_of(ZX200_CHANNELS + i);
      if (std::isfinite(volts)) {       // else the one before is still in force
        input_.command[i] = volts;
      }
      commanded = commanded && std::isfinite(input_.command[i]);
    }
    if (commanded) {
      zx200_step(&estimator_, &input_, &output_);
    }                                   // else nothing is known yet, and NO_DATA stays
    publish(time);
    return return_type::OK;
  }

private:
  using Publisher = realtime_tools::RealtimePublisher<PayloadEstimate>;

  // Append the names of a parameter; false, and a line in the log, where they are not as many as the machine has.
  bool named(const char * parameter, size_t count)
  {
    const auto given = get_node()->get_parameter(parameter).as_string_array();
    if (given.size() != count) {
      RCLCPP_ERROR(
        get_node()->get_logger(), "%s: got %zu state interfaces, expected %zu in the order of zx200.h", parameter,
        given.size(), count);
      return false;
    }
    if (std::string(parameter) == "samples") {
      names_.clear();                   // a second configuration begins again
    }
    names_.insert(names_.end(), given.begin(), given.end());
    return true;
  }

  // NaN where the hardware has none, or writes at this moment.
  double value_of(size_t place) const {return ordered_[place].get().get_optional().value_or(NAN);}

  // Nothing waits here, and short texts allocate only once: a message that is still being sent is skipped.
  void publish(const rclcpp::Time & time)
  {
    const Meaning meaning = meaning_of(output_.status);
    message_.header.stamp = time;
    message_.sequence += 1;
    message_.samples += static_cast<uint64_t>(std::max(0, output_.taken));
    message_.status = meaning.status;
    message_.reason = meaning.reason;
    message_.faults = output_.faults ? output_.faults : meaning.faults;
    message_.mass = output_.held_mass;  // as payload_node has it: a number to use only where status is UPDATING
    message_.stddev = output_.held_stddev;
    message_.lower = output_.held_lower;
    message_.upper = output_.held_upper;
    message_.raw = output_.raw;
    publisher_->try_publish(message_);
  }

  std::vector<std::string> names_;
  std::vector<std::reference_wrapper<hardware_interface::LoanedStateInterface>> ordered_;
  std::unique_ptr<Publisher> publisher_;
  PayloadEstimate message_;
  zx200_estimator estimator_;
  zx200_input input_{};
  zx200_output output_{};
  bool first_ = true;
};
}  // namespace mbse_examples

PLUGINLIB_EXPORT_CLASS(mbse_examples::PayloadBroadcaster, controller_interface::ControllerInterface)
