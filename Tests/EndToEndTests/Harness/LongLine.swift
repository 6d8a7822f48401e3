import Foundation
import Glibc
import Testing

/// A line with delay, loss and a rate between two network namespaces (bench/wanlink.c: this kernel has no netem).
struct LongLine: Sendable, CustomTestStringConvertible {
  static let isPermitted = getuid() == 0 && access("/dev/net/tun", R_OK | W_OK) == 0
  static let why: Comment = "a line with delay needs root and /dev/net/tun"

  /// In each direction.
  let delayMilliseconds: Int
  var lossPercent = 0.0
  /// 0: no limit.
  var megabitsPerSecond = 0

  var testDescription: String { "\(2 * delayMilliseconds) ms, \(lossPercent) % loss, \(megabitsPerSecond) Mbit/s" }

  /// Makes the device `near` of one namespace and `far` of the other. Both are gone with the program.
  func join(_ near: (space: String, device: String), _ far: (space: String, device: String), in folder: String)
    async throws -> Child
  {
    let program = "\(folder)/wanlink"
    let source = URL(filePath: #filePath).deletingLastPathComponent().path + "/../../../bench/wanlink.c"
    let built = try await Programs.run("clang", ["-O2", "-pthread", "-w", "-o", program, source])
    try #require(built.exitCode == 0, "\(built.error)")
    let line = [String(delayMilliseconds), String(lossPercent), String(megabitsPerSecond)]
    let child = try Child(
      program, [near.space, near.device, far.space, far.device] + line, log: "\(folder)/wanlink.log")
    try await waitUntil("the line is there") {
      guard child.isRunning else { throw Failed("wanlink ended: \(child.lastWords)") }
      return child.lastWords.contains("ready")
    }
    return child
  }
}
