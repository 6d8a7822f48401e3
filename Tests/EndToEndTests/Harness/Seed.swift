import Foundation

/// Where a random run begins: printed, and taken from `PRISM_SEED` for the same run again.
enum Seed {
  static func next(_ what: String) -> UInt64 {
    let seed = ProcessInfo.processInfo.environment["PRISM_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1_000_000)
    print("\(what): PRISM_SEED=\(seed)")
    return seed
  }

  static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }
}
