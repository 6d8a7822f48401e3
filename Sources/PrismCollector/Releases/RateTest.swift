import Glibc

/// Tells by crashes of chosen devices and of the others whether the chosen ones crash more often. It may be asked at any time, and
/// often: if the rates are equal, the chance that it ever says so is at most `alpha`.
///
/// A mixture sequential probability ratio test (docs/releases.md, "The test"). Of the crashes of one look, the share of the chosen
/// devices is binomial with the probability `r·e/(r·e + o)`. There `r` is the ratio of the rates, and `e` and `o` are the times in
/// use. The likelihood ratios of all looks are multiplied for each of some ratios, and averaged.
struct RateTest: Sendable, Equatable {
  /// The time in use of one side, and its crashes.
  struct Arm: Sendable, Equatable {
    var exposure = 0.0
    var events = 0
  }

  static let alpha = 0.005
  /// Ratios between the tolerated one and 32 times of it.
  private static let ratios = (1...20).map { exp2(Double($0) / 4) }

  /// The ratio of rates that is not worse yet: 1.1 is a tenth more.
  let tolerated: Double
  private(set) var chosen = Arm(), others = Arm()
  /// By ratio, the logarithm of its likelihood ratio.
  private var logs = Array(repeating: 0.0, count: ratios.count)

  init(tolerated: Double) { self.tolerated = tolerated }

  /// Adds what happened since the last look.
  mutating func take(chosen new: Arm, others other: Arm) {
    chosen = Arm(exposure: chosen.exposure + new.exposure, events: chosen.events + new.events)
    others = Arm(exposure: others.exposure + other.exposure, events: others.events + other.events)
    // Without the time of both there is nothing to compare.
    guard new.exposure > 0, other.exposure > 0, new.events + other.events > 0 else { return }
    let equal = Self.share(tolerated, new.exposure, other.exposure)
    for (place, ratio) in Self.ratios.enumerated() {
      let share = Self.share(tolerated * ratio, new.exposure, other.exposure)
      logs[place] += Double(new.events) * log(share / equal) + Double(other.events) * log((1 - share) / (1 - equal))
    }
  }

  private static func share(_ ratio: Double, _ chosen: Double, _ others: Double) -> Double {
    ratio * chosen / (ratio * chosen + others)
  }

  /// How much more likely a worse rate makes what happened than a tolerated one does.
  var evidence: Double {
    let most = logs.max() ?? 0
    return exp(most) * logs.reduce(0) { $0 + exp($1 - most) } / Double(logs.count)
  }

  var isWorse: Bool { evidence >= 1 / Self.alpha }
}

/// The ratio of two rates with its interval of 95 %.
struct RateRatio: Sendable, Equatable {
  /// nil: the other one has no event.
  let ratio: Double?
  let low: Double
  /// nil: there is no upper end.
  let high: Double?

  /// Exact: of all events those of one arm are binomial, whose interval is that of Clopper and Pearson.
  /// - Returns: nil: one of them has no time, or there is no event.
  init?(_ one: RateTest.Arm, to other: RateTest.Arm) {
    let all = one.events + other.events
    guard one.exposure > 0, other.exposure > 0, all > 0 else { return nil }
    let scale = other.exposure / one.exposure
    let odds = { (share: Double) in share / (1 - share) * scale }
    ratio = other.events == 0 ? nil : Double(one.events) / Double(other.events) * scale
    low = one.events == 0 ? 0 : odds(Self.share(one.events, all, tail: 0.025))
    high = other.events == 0 ? nil : odds(1 - Self.share(other.events, all, tail: 0.025))
  }

  /// The share at which `events` or more of `all` have the chance `tail`.
  private static func share(_ events: Int, _ all: Int, tail: Double) -> Double {
    var (low, high) = (0.0, 1.0)
    for _ in 0..<60 {
      let middle = (low + high) / 2
      if atLeast(events, of: all, middle) < tail { low = middle } else { high = middle }
    }
    return (low + high) / 2
  }

  /// The chance of `events` or more of `all`: the regularized incomplete beta function, by its continued fraction (DLMF 8.17.22).
  static func atLeast(_ events: Int, of all: Int, _ share: Double) -> Double {
    guard events > 0 else { return 1 }
    let (a, b) = (Double(events), Double(all - events + 1))
    guard share > 0 else { return 0 }
    guard share < 1 else { return 1 }
    if share > (a + 1) / (a + b + 2) { return 1 - fraction(1 - share, b, a) }
    return fraction(share, a, b)
  }

  private static func fraction(_ x: Double, _ a: Double, _ b: Double) -> Double {
    let logBeta: Double = lgamma(a) + lgamma(b) - lgamma(a + b)
    let power: Double = a * log(x) + b * log(1 - x)
    let front = exp(power - logBeta) / a
    // Lentz's method.
    var (c, d) = (1.0, 1 / (1 - (a + b) * x / (a + 1)))
    var result = d
    for step in 1...2000 {
      let m = Double(step)
      let n = a + 2 * m
      let even: Double = m * (b - m) * x / ((n - 1) * n)
      (d, c) = (1 / (1 + even * d), 1 + even / c)
      result *= d * c
      let odd: Double = -(a + m) * (a + b + m) * x / (n * (n + 1))
      (d, c) = (1 / (1 + odd * d), 1 + odd / c)
      result *= d * c
      if abs(d * c - 1) < 1e-12 { break }
    }
    return front * result
  }
}
