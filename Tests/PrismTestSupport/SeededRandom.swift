import Glibc

/// splitmix64: the same numbers for the same seed, on every machine.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64
  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var x = state
    x = (x ^ (x >> 30)) &* 0xBF58_476D_1CE4_E5B9
    x = (x ^ (x >> 27)) &* 0x94D0_49BB_1331_11EB
    return x ^ (x >> 31)
  }

  /// true once in `count` times.
  public mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }

  public mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int.random(in: 0..<elements.count, using: &self)]
  }

  /// `PRISM_SEED`, or a new one; printed, so that a failed run can be replayed exactly.
  public static func announcedSeed(_ suite: String) -> UInt64 {
    let given = getenv("PRISM_SEED").flatMap { UInt64(String(cString: $0)) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    print("\(suite): seed \(seed) (replay with PRISM_SEED=\(seed))")
    return seed
  }
}

/// How much a run does: `PRISM_SOAK` multiplies the short form that `make test` runs.
public var soakFactor: Int { getenv("PRISM_SOAK").flatMap { Int(String(cString: $0)) } ?? 1 }
