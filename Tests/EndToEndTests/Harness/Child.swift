import Dispatch
import Foundation
import Synchronization
import Testing

/// A program that was started, its output going to files.
final class Child: Sendable {
  let name: String
  private let process: Mutex<Process>
  private let log: String

  /// - Parameter log: the file that takes its standard error; what is there stays.
  init(_ path: String, _ arguments: [String], environment: [String: String] = [:], log: String) throws {
    (name, self.log) = (String(path.split(separator: "/").last ?? ""), log)
    let process = Process()
    process.executableURL = URL(filePath: path)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
      .merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
    let output = try Programs.outputFile(log)
    process.standardError = output
    process.standardOutput = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    self.process = Mutex(process)
  }

  var identifier: Int32 { process.withLock { $0.processIdentifier } }
  var isRunning: Bool { process.withLock { $0.isRunning } }

  /// Sends the signal and waits for the end. - Returns: the exit code, or the number of the signal that ended it.
  @discardableResult
  func end(_ signal: Int32) async throws -> Int32 {
    kill(identifier, signal)
    try await waitUntil("\(name) ends after signal \(signal): \(lastWords)", within: .seconds(30)) { !self.isRunning }
    return process.withLock { $0.terminationStatus }
  }

  /// The end of its log, for a test's message.
  var lastWords: String {
    let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").suffix(8).joined(separator: "\n")
  }
}

/// What a program answered that ran to its end.
struct Ran: Sendable {
  let exitCode: Int32
  let output: String
  let error: String
  var lines: [String] { output.split(separator: "\n").map { String($0) } }
}
