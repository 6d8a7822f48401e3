import Foundation
import Glibc
import PrismTestSupport

/// A program that a test needs beside it. Waiting for it never holds a thread of the cooperative pool.
struct ChildProcess: Sendable {
  private let program: StartedProgram
  private let output: FileHandle

  /// - Parameter arguments: the first is looked up in PATH.
  /// - Parameter withErrors: what goes to standard error counts as output.
  init(_ arguments: [String], withErrors: Bool = false) throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw StartedProgram.CannotStart(description: "no pipe: errno \(errno)") }
    output = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    defer { close(ends[1]) }
    program = try StartedProgram(
      arguments[0], Array(arguments.dropFirst()), .init(output: ends[1], error: withErrors ? ends[1] : nil))
  }

  /// The next line that it prints; empty when it ends without one.
  func nextLine() async -> String {
    await onThread { [output] in
      var line: [UInt8] = []
      while let byte = output.readData(ofLength: 1).first, byte != 0x0A { line.append(byte) }
      return String(decoding: line, as: UTF8.self)
    }
  }

  func end() { program.signal(SIGTERM) }

  /// - Returns: what it printed, errors too, and its exit status.
  static func run(_ arguments: [String]) async throws -> (output: String, status: Int32) {
    let child = try ChildProcess(arguments, withErrors: true)
    let output = await onThread { [child] in child.output.readDataToEndOfFile() }
    return (String(decoding: output, as: UTF8.self), await child.program.end())
  }
}

/// Runs what blocks on a thread of its own.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: body()) }
  }
}
