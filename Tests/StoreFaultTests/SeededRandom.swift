#if canImport(Glibc)
  import Glibc
#endif

/// splitmix64: the same numbers for the same seed, on every machine.
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var x = state
    x = (x ^ (x >> 30)) &* 0xBF58_476D_1CE4_E5B9
    x = (x ^ (x >> 27)) &* 0x94D0_49BB_1331_11EB
    return x ^ (x >> 31)
  }

  /// `PRISM_SEED`, or a new one; printed, so that a failed run can be replayed exactly.
  static func announcedSeed(_ suite: String) -> UInt64 {
    let given = getenv("PRISM_SEED").flatMap { UInt64(String(cString: $0)) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    print("\(suite): seed \(seed) (replay with PRISM_SEED=\(seed))")
    return seed
  }
}

/// How much a run does: `PRISM_SOAK` multiplies the short form that `make test` runs.
var soakFactor: Int { getenv("PRISM_SOAK").flatMap { Int(String(cString: $0)) } ?? 1 }
