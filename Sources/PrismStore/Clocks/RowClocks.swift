import Glibc
import PrismBase
import PrismProtocol

/// Finds the clock's corrections of rows while a packet is built. Rows that come together mostly have one stamp: it is read
/// once.
struct RowClocks {
  private let book: ClockBook
  /// The last stamp, as it is written in the members of a row, and where.
  private var last: (text: [UInt8], offset: Int, stamp: ClockStamp, isPresent: Bool)?

  init(_ book: ClockBook) { self.book = book }

  /// Members that the packet adds to what a row of this stamp has in common with others.
  func members(of stamp: ClockStamp, createdTime: Int64) -> [UInt8] {
    let correction = book.correction(of: stamp, createdTime: createdTime)
    var members: [String] = []
    if correction.isOfEarlierBoot { members.append("\"\(ClockMembers.bootKey)\":\"\(ClockMembers.earlierBoot)\"") }
    if correction.step != 0 { members.append("\"\(ClockMembers.stepKey)\":\"\(correction.step)\"") }
    return Array(members.joined(separator: ",").utf8)
  }

  /// The stamp in the members of a row or of its context, which are without braces.
  /// - Returns: nil for a stamp of the present setting, or without one: the time needs no correction.
  mutating func pastStamp(in members: UnsafeRawBufferPointer) -> ClockStamp? {
    if let last, members.dropFirst(last.offset).starts(with: last.text) { return last.isPresent ? nil : last.stamp }
    guard let stamp = ClockStamp(members: members) else { return nil }
    let (text, isPresent) = (stamp.members, book.isPresent(stamp))
    last = members.offset(of: text).map { (text, $0, stamp, isPresent) }
    return isPresent ? nil : stamp
  }
}

extension ClockStamp {
  /// nil for a row without a stamp: an older prism's, or of a machine without `/proc`.
  /// - Parameter members: of a JSON object, without braces.
  init?(members: UnsafeRawBufferPointer) {
    guard let json = try? JSONValue(parsingMembers: members), let bootID = json[ClockMembers.bootIDKey]?.string,
      let bootTime = json[ClockMembers.bootTimeKey]?.string.flatMap({ Int64($0) })
    else { return nil }
    self.init(bootID: bootID, setting: ClockSetting(bootTime: bootTime))
  }

  /// As `CommonInformation` writes it: the keys are sorted, so the two stand side by side.
  fileprivate var members: [UInt8] {
    let (id, time) = (ClockMembers.bootIDKey, ClockMembers.bootTimeKey)
    return Array("\"\(id)\":\"\(bootID)\",\"\(time)\":\"\(setting.bootTime)\"".utf8)
  }
}

extension UnsafeRawBufferPointer {
  /// Where `text` is first. The standard library's search is generic: it took half the time of a claim of 100 rows.
  fileprivate func offset(of text: [UInt8]) -> Int? {
    guard let baseAddress, count >= text.count else { return nil }
    return (0...(count - text.count)).first { memcmp(baseAddress + $0, text, text.count) == 0 }
  }
}
