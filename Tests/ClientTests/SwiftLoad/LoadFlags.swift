import Foundation

/// The flags of the scenario program; those of clients/c/tests/client_load.c.
struct LoadFlags: Sendable {
  private let texts: [String: String]
  /// Interrupts its own system calls all the time.
  let hasSignals: Bool

  /// - Parameter words: pairs of a flag and its value, and `--signals`.
  init(_ words: [String]) throws {
    let pairs = words.filter { $0 != "--signals" }
    guard pairs.count.isMultiple(of: 2) else { throw LoadFailure("a value is missing") }
    texts = Dictionary(
      stride(from: 0, to: pairs.count, by: 2).map { (pairs[$0], pairs[$0 + 1]) }, uniquingKeysWith: { $1 })
    hasSignals = pairs.count != words.count
  }

  func text(_ name: String) throws -> String {
    guard let text = texts["--" + name] else { throw LoadFailure("--\(name) is missing") }
    return text
  }

  func number(_ name: String, default value: Int = 0) throws -> Int {
    guard let text = texts["--" + name] else { return value }
    guard let number = Int(text) else { throw LoadFailure("--\(name): a number is expected") }
    return number
  }

  /// The flags of a child: other numbers, few reports, the same log.
  func words(ofChild index: Int) throws -> [String] {
    var texts = texts
    texts["--first"] = String(try number("first") + (index + 1) * 10_000_000)
    (texts["--reports"], texts["--threads"], texts["--children"]) = ("100", "1", nil)
    return texts.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
  }
}

struct LoadFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
