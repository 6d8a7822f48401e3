import CSpawn
import Foundation
import Glibc
import Synchronization

/// A program that a test started. The kernel kills it when the tests' process ends in any way. Foundation's `Process`
/// can't do that. Two of them that start at once may also inherit each other's descriptors: then the end of one is not
/// seen before the end of the other.
public final class StartedProgram: Sendable {
  public struct Streams: Sendable {
    /// Descriptors, which stay the caller's; nil: `/dev/null`.
    public var input: Int32?, output: Int32?, error: Int32?
    public init(input: Int32? = nil, output: Int32? = nil, error: Int32? = nil) {
      (self.input, self.output, self.error) = (input, output, error)
    }
  }

  public struct CannotStart: Error, CustomStringConvertible {
    public let description: String
    public init(description: String) { self.description = description }
  }

  private struct State {
    var exitCode: Int32?
    var waiters: [CheckedContinuation<Int32, Never>] = []
  }

  public let identifier: Int32
  private let state = Mutex(State())

  /// - Parameter path: with a slash in it; any other is looked up in PATH.
  /// - Parameter environment: beside the tests' own.
  public init(_ path: String, _ arguments: [String], environment: [String: String] = [:], _ streams: Streams) throws {
    let command = path.contains("/") ? [path] + arguments : ["/usr/bin/env", path] + arguments
    let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
      .merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    defer { close(null) }
    let numbers = [streams.input ?? null, streams.output ?? null, streams.error ?? null]
    identifier = Self.withCStrings(command) { words in
      Self.withCStrings(variables.map { "\($0.key)=\($0.value)" }) { prism_spawn(words[0], words, $0, numbers) }
    }
    guard identifier > 0 else {
      throw CannotStart(description: "\(command[0]) can't be started: \(String(cString: strerror(-identifier)))")
    }
    Thread.detachNewThread { self.reap() }
  }

  private static func withCStrings<R>(_ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R) -> R {
    let pointers = texts.map { strdup($0) }
    defer { for pointer in pointers { free(pointer) } }
    return body(pointers + [nil])
  }

  /// Its exit code, or the number of the signal that ended it; nil while it runs.
  public var exitCode: Int32? { state.withLock { $0.exitCode } }

  /// Does nothing when it has ended.
  public func signal(_ number: Int32) {
    state.withLock { if $0.exitCode == nil { kill(identifier, number) } }
  }

  /// Waits for its end.
  public func end() async -> Int32 {
    await withCheckedContinuation { continuation in
      let ended = state.withLock { state in
        if state.exitCode == nil { state.waiters.append(continuation) }
        return state.exitCode
      }
      if let ended { continuation.resume(returning: ended) }
    }
  }

  private func reap() {
    var facts = siginfo_t()
    while waitid(P_PID, id_t(identifier), &facts, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
    let (code, waiters) = state.withLock { state in
      // Only here is its number free for others.
      var status: Int32 = 0
      waitpid(identifier, &status, 0)
      let code = status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
      state.exitCode = code
      defer { state.waiters = [] }
      return (code, state.waiters)
    }
    for waiter in waiters { waiter.resume(returning: code) }
  }
}
