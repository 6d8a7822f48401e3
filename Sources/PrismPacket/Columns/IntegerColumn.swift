/// Integers as the least of three: offsets from the least, differences, differences of differences. Then the low bytes of all,
/// the next bytes of all, and so on. All arithmetic wraps around, so that each integer of 64 bits comes back.
enum IntegerColumn {
  enum Mode: UInt8, CaseIterable {
    case offsets, differences, secondDifferences
  }

  /// How many values in the middle are looked at to choose the mode.
  static let sampleMax = 96

  /// - Parameter values: become what is written of them.
  static func append(_ values: UnsafeMutableBufferPointer<Int64>, to runs: inout ColumnRuns) {
    let mode = self.mode(of: UnsafeBufferPointer(values))
    runs.append(byte: mode.rawValue)
    var rest = values
    for _ in 0..<mode.rawValue {
      runs.append(signed: rest[0])
      subtract(rest)
      rest = UnsafeMutableBufferPointer(rebasing: rest[1...])
    }
    var (least, most) = (rest[0], rest[0])
    for value in rest { (least, most) = (min(least, value), max(most, value)) }
    let width = bytes(UInt64(bitPattern: most &- least))
    runs.append(signed: least)
    runs.append(byte: UInt8(width))
    for plane in 0..<width {
      runs.append(run: rest.count) { bytes in
        let shift = UInt64(8 * plane)
        for index in 0..<rest.count {
          bytes[index] = UInt8(truncatingIfNeeded: UInt64(bitPattern: rest[index] &- least) &>> shift)
        }
      }
    }
  }

  /// Each becomes its difference from the one before it.
  private static func subtract(_ values: UnsafeMutableBufferPointer<Int64>) {
    var former = values[0]
    for index in 1..<values.count {
      let value = values[index]
      values[index] = value &- former
      former = value
    }
  }

  private static func bytes(_ span: UInt64) -> Int { (71 - span.leadingZeroBitCount) / 8 }

  /// About how many bits the values take in the best mode.
  static func mode(of values: UnsafeBufferPointer<Int64>) -> Mode {
    guard values.count > 8 else { return .offsets }
    let costs = costs(values)
    // A difference must pay: it spreads what is random.
    if costs.second * 10 < min(costs.first, costs.plain) * 9 { return .secondDifferences }
    return costs.first * 10 < costs.plain * 9 ? .differences : .offsets
  }

  /// The bits of a sample in each mode, each value for itself.
  static func costs(_ values: UnsafeBufferPointer<Int64>) -> (plain: Int, first: Int, second: Int) {
    let start = max(0, values.count - sampleMax) / 2
    let sample = UnsafeBufferPointer(rebasing: values[start..<min(values.count, start + sampleMax)])
    var least = sample[0]
    for value in sample { least = min(least, value) }
    let step = median(
      sample[1] &- sample[0], sample[sample.count / 2] &- sample[sample.count / 2 - 1],
      sample[sample.count - 1] &- sample[sample.count - 2])
    var (plain, first, second) = (0, 0, 0)
    var (former, difference) = (sample[0], step)
    for value in sample {
      plain += 64 - UInt64(bitPattern: value &- least).leadingZeroBitCount
      let next = value &- former
      first += bits(next &- step)
      second += bits(next &- difference)
      (former, difference) = (value, next)
    }
    return (plain, first, second)
  }

  private static func median(_ a: Int64, _ b: Int64, _ c: Int64) -> Int64 { max(min(a, b), min(max(a, b), c)) }

  /// With the sign; 0 for 0.
  @inline(__always) private static func bits(_ value: Int64) -> Int {
    let size = UInt64(bitPattern: value < 0 ? ~value : value)
    return value == 0 ? 0 : 65 - size.leadingZeroBitCount
  }
}

/// Reads integers one after the other, in order.
struct IntegerReader {
  private let mode: IntegerColumn.Mode
  private let least: Int64
  /// The low bytes of all; the other planes follow.
  private let planes: Range<Int>
  private let planeBytes: Int
  /// The integer before, and its difference.
  private var (value, difference): (Int64, Int64) = (0, 0)
  /// In a plane; below 0 for integers that are written apart.
  private var index: Int

  /// No integers.
  init() { (mode, least, planes, planeBytes, index) = (.offsets, 0, 0..<0, 0, 0) }

  /// - Parameter count: of the integers; at least 1.
  init(_ input: inout ColumnInput, count: Int) throws(PacketError) {
    guard let mode = IntegerColumn.Mode(rawValue: try input.byte()), count > Int(mode.rawValue) else {
      throw .unpackFailed
    }
    if mode != .offsets { value = try input.signed() }
    if mode == .secondDifferences { difference = try input.signed() }
    (self.mode, index, planeBytes) = (mode, -Int(mode.rawValue), count - Int(mode.rawValue))
    least = try input.signed()
    let width = try input.byte()
    guard width <= 8 else { throw .unpackFailed }
    var planes = 0..<0
    for plane in 0..<width {
      let run = try input.run(planeBytes)
      planes = (plane == 0 ? run.lowerBound : planes.lowerBound)..<run.upperBound
    }
    self.planes = planes
  }

  /// - Parameter bytes: of the input. There must be one more integer.
  @inline(__always) mutating func next(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64 {
    defer { index += 1 }
    guard index >= 0 else {
      if index == -1, mode == .secondDifferences { value &+= difference }
      return value
    }
    var (bits, shift, place) = (UInt64(0), UInt64(0), planes.lowerBound + index)
    while place < planes.upperBound {
      bits |= UInt64(bytes[place]) &<< shift
      (shift, place) = (shift + 8, place + planeBytes)
    }
    let written = least &+ Int64(bitPattern: bits)
    switch mode {
    case .offsets: return written
    case .differences: value &+= written
    case .secondDifferences:
      difference &+= written
      value &+= difference
    }
    return value
  }

  /// The next `count` integers. - Parameter bytes: of the input, which has as many more.
  mutating func all(_ count: Int, _ bytes: UnsafeBufferPointer<UInt8>) -> [Int64] {
    [Int64](unsafeUninitializedCapacity: count) { values, filled in
      for place in 0..<count { values.initializeElement(at: place, to: next(bytes)) }
      filled = count
    }
  }
}
