import Foundation
import Glibc
import PrismTestSupport

/// A program that was started, its output going to a file.
final class Child: Sendable {
  let name: String
  private let program: StartedProgram
  private let log: String

  /// - Parameter log: the file that takes what it prints; what is there stays.
  init(_ path: String, _ arguments: [String], environment: [String: String] = [:], log: String) throws {
    (name, self.log) = (String(path.split(separator: "/").last ?? ""), log)
    let output = try Programs.outputFile(log)
    defer { close(output) }
    program = try StartedProgram(path, arguments, environment: environment, .init(output: output, error: output))
  }

  var identifier: Int32 { program.identifier }
  var isRunning: Bool { program.exitCode == nil }

  func signal(_ number: Int32) { program.signal(number) }

  /// Sends the signal and waits for the end. - Returns: the exit code, or the number of the signal that ended it.
  @discardableResult
  func end(_ signal: Int32) async throws -> Int32 {
    program.signal(signal)
    try await waitUntil("\(name) ends after signal \(signal): \(lastWords)") { !self.isRunning }
    return await program.end()
  }

  /// The end of its log, for a test's message.
  var lastWords: String {
    let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").suffix(8).joined(separator: "\n")
  }
}

/// The output and the exit code of a program that ran to its end.
struct Ran: Sendable {
  let exitCode: Int32
  let output: String
  let error: String
  var lines: [String] { output.split(separator: "\n").map { String($0) } }
}
