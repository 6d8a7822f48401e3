import Foundation

/// A program that a test needs beside it. Waiting for it never holds a thread of the cooperative pool.
struct ChildProcess: Sendable {
  let process: Process
  private let output: FileHandle

  /// - Parameter arguments: the first is looked up in PATH.
  /// - Parameter withErrors: what goes to standard error counts as output.
  init(_ arguments: [String], withErrors: Bool = false) throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    let pipe = Pipe()
    output = pipe.fileHandleForReading
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = pipe
    process.standardError = withErrors ? pipe : FileHandle.nullDevice
    try process.run()
  }

  /// The next line that it prints; empty when it ends without one.
  func nextLine() async -> String {
    await onThread { [output] in
      var line: [UInt8] = []
      while let byte = output.readData(ofLength: 1).first, byte != 0x0A { line.append(byte) }
      return String(decoding: line, as: UTF8.self)
    }
  }

  func end() { process.terminate() }

  /// - Returns: what it printed, errors too, and its exit status.
  static func run(_ arguments: [String]) async throws -> (output: String, status: Int32) {
    let child = try ChildProcess(arguments, withErrors: true)
    return await onThread { [child] in
      let output = child.output.readDataToEndOfFile()
      child.process.waitUntilExit()
      return (String(decoding: output, as: UTF8.self), child.process.terminationStatus)
    }
  }
}

/// Runs what blocks on a thread of its own.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: body()) }
  }
}
