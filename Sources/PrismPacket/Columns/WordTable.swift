import Glibc

/// The different values of a column, as far as they are few.
struct WordTable {
  static let wordsMax = 256
  private static let slotCount = 1024

  private(set) var words: [TextPlace] = []
  /// The number of a word and 1; 0: free.
  private var slots = [UInt16](repeating: 0, count: slotCount)

  /// - Parameter numbers: get the number of each value's word.
  /// - Returns: whether there are at most half as many words as values, and not over 256 or `wordsMax`.
  mutating func fill(
    _ text: UnsafePointer<UInt8>, _ places: UnsafeBufferPointer<TextPlace>,
    numbers: UnsafeMutableBufferPointer<Int64>, wordsMax: Int
  ) -> Bool {
    words.removeAll(keepingCapacity: true)
    let most = min(Self.wordsMax, wordsMax, places.count / 2)
    return slots.withUnsafeMutableBufferPointer { slots in
      slots.update(repeating: 0)
      for index in places.indices {
        let place = places[index]
        guard place.count > 0 else { return false }
        var slot = Self.hash(text + place.start, place.count)
        while true {
          let word = Int(slots[slot])
          if word == 0 {
            guard words.count < most else { return false }
            words.append(place)
            slots[slot] = UInt16(words.count)
            numbers[index] = Int64(words.count - 1)
            break
          }
          let known = words[word - 1]
          if known.count == place.count, memcmp(text + known.start, text + place.start, place.count) == 0 {
            numbers[index] = Int64(word - 1)
            break
          }
          slot = (slot + 1) % Self.slotCount
        }
      }
      return true
    }
  }

  /// Of the length, and of the first and the last eight bytes.
  @inline(__always) private static func hash(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> Int {
    var (first, last) = (UInt64(0), UInt64(0))
    if count >= 8 {
      first = UnsafeRawPointer(bytes).loadUnaligned(as: UInt64.self)
      last = UnsafeRawPointer(bytes + count - 8).loadUnaligned(as: UInt64.self)
    } else {
      for index in 0..<count { first = first << 8 | UInt64(bytes[index]) }
    }
    let mixed = (first &* 0x9E37_79B9_7F4A_7C15 ^ last &* 0xBF58_476D_1CE4_E5B9 ^ UInt64(count))
    return Int((mixed &* 0x94D0_49BB_1331_11EB) >> 54)
  }
}
