import Foundation
import Glibc
import PrismTestSupport
import Testing

/// Librdkafka's mock cluster in a process of its own.
final class KafkaMock: Sendable {
  struct Message: Equatable {
    var key: String, packet: String, device: String, namespace: String, type: String, value: String
  }

  struct Failure: Error, CustomStringConvertible { let description: String }

  static let partitions = 3
  let brokers: String
  let folder = TemporaryFolder()
  private let program: StartedProgram
  private let input: Int32
  // One command at a time reads it.
  private nonisolated(unsafe) let output: UnsafeMutablePointer<FILE>

  static func start(brokers count: Int = 3) async throws -> KafkaMock {
    try await Task.detached { try KafkaMock(count) }.value
  }

  private init(_ count: Int) throws {
    let source = URL(filePath: #filePath).deletingLastPathComponent().path + "/kafka-mock.c"
    let compiler = try StartedProgram(
      "clang", ["-O1", "-o", folder("kafka-mock"), source, "-lrdkafka"], .init(error: 2))
    while compiler.exitCode == nil { usleep(10_000) }
    guard compiler.exitCode == 0 else { throw Failure(description: "clang can't make kafka-mock") }
    var (questions, answers): ([Int32], [Int32]) = ([0, 0], [0, 0])
    guard pipe(&questions) == 0, pipe(&answers) == 0 else { throw Failure(description: "pipe") }
    for descriptor in questions + answers { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    program = try StartedProgram(
      folder("kafka-mock"), ["\(count)", "\(Self.partitions)"], .init(input: questions[0], output: answers[1], error: 2)
    )
    close(questions[0])
    close(answers[1])
    (input, output) = (questions[1], fdopen(answers[0], "r"))
    brokers = try Self.line(output)
  }

  deinit {
    program.signal(SIGKILL)
    close(input)
    fclose(output)
  }

  private static func line(_ file: UnsafeMutablePointer<FILE>) throws -> String {
    var (text, size): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    defer { free(text) }
    guard getline(&text, &size, file) > 0, let text else { throw Failure(description: "kafka-mock ended") }
    return String(String(cString: text).dropLast())
  }

  func tell(_ command: String) async throws {
    try await Task.detached { [self] in
      dprintf(command)
      let answer = try Self.line(output)
      guard answer == "ok" else { throw Failure(description: "\(command): \(answer)") }
    }.value
  }

  private func dprintf(_ command: String) {
    let line = command + "\n"
    _ = write(input, line, line.utf8.count)
  }

  /// Everything that the brokers have, in the order of each partition.
  func messages() async throws -> [Message] {
    try await Task.detached { [self] in
      dprintf("read")
      var messages: [Message] = []
      while case let line = try Self.line(output), line != "END" {
        let parts = line.split(separator: "\t", maxSplits: 6, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 7 else { throw Failure(description: line) }
        messages.append(
          Message(
            key: parts[1], packet: parts[2], device: parts[3], namespace: parts[4], type: parts[5], value: parts[6]))
      }
      return messages
    }.value
  }
}
