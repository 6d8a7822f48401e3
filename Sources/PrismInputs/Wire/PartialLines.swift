import PrismProtocol

/// Joins the lines of containers that Docker or podman sent in parts of 16 KiB: `partial_message` of Docker's driver for Fluent,
/// `CONTAINER_PARTIAL_MESSAGE` in the journal. Used by one thread, or one actor.
final class PartialLines<Origin> {
  struct Names: Sendable {
    let text: String, message: String, id: String, ordinal: String, last: String
    /// The last part of a line has no `message`. Docker before 23, and podman, give no id and no ordinal either: the part goes on
    /// with the line of its container and stream.
    var endsUnmarked = false

    static var fluent: Names {
      Names(
        text: "log", message: "partial_message", id: "partial_id", ordinal: "partial_ordinal", last: "partial_last")
    }

    static var journal: Names {
      Names(
        text: "MESSAGE", message: "CONTAINER_PARTIAL_MESSAGE", id: "CONTAINER_PARTIAL_ID",
        ordinal: "CONTAINER_PARTIAL_ORDINAL", last: "CONTAINER_PARTIAL_LAST", endsUnmarked: true)
    }
  }

  /// A line as far as it came.
  struct Line {
    /// Of the first part.
    let origin: Origin
    let startedAt: Duration
    fileprivate var parts: [JSONValue.Member]
    fileprivate var text: String
    fileprivate var ordinal: Int
    fileprivate let names: Names

    /// The members of the whole line, without braces; of a line that ended early it says so as the last part did.
    func members(isWhole: Bool) -> [UInt8] {
      let members = parts.compactMap { member -> JSONValue.Member? in
        if isWhole, member.key == names.message { return nil }
        return member.key == names.text ? .init(member.key, .string(text)) : member
      }
      return Array(JSONValue.object(members).bytes.dropFirst().dropLast())
    }
  }

  enum Taken {
    /// It is no part, or one that can't be joined.
    case no
    case held
    case whole(Line)
  }

  /// Of one line, and of all; past it, parts stay parts.
  static var lineBytesMax: Int { 1024 * 1024 }
  static var bytesMax: Int { 4 * 1024 * 1024 }

  private var lines: [String: Line] = [:]
  private var bytes = 0

  var isEmpty: Bool { lines.isEmpty }

  /// - Parameter key: tells the senders apart. - Parameter members: of the record, without braces.
  func take(
    _ members: [UInt8], _ names: Names, of key: String, _ origin: @autoclosure () -> Origin, now: Duration
  ) -> Taken {
    guard let tree = try? JSONValue(parsingMembers: members, allowsDuplicateKeys: true),
      let object = tree.object, let text = tree[names.text]?.string
    else { return .no }
    let (isMarked, id) = (tree[names.message]?.string == "true", tree[names.id]?.string)
    let given = tree[names.ordinal]?.string.flatMap { Int($0) }
    guard names.endsUnmarked || isMarked && id != nil && given != nil else { return .no }
    let key = "\(key)\u{0}\(id ?? "")"
    let known = lines[key]
    let next = (known?.ordinal ?? 0) + 1
    guard known != nil || isMarked, given ?? next == next else { return .no }
    var line = known ?? Line(origin: origin(), startedAt: now, parts: object, text: "", ordinal: 0, names: names)
    let isLast = !isMarked || tree[names.last]?.string == "true"
    let added = text.utf8.count
    guard line.text.utf8.count + added <= Self.lineBytesMax, isLast || bytes + added <= Self.bytesMax else {
      return .no
    }
    lines[key] = nil  // so that nothing of it is copied
    line.text += text
    (line.ordinal, line.parts) = (next, object)
    if isLast {
      bytes -= line.text.utf8.count - added
      return .whole(line)
    }
    bytes += added
    lines[key] = line
    return .held
  }

  /// Takes the lines that began before `time`, in the order in which they began.
  func takeOld(before time: Duration) -> [Line] {
    let old = lines.filter { $0.value.startedAt < time }
    for (key, line) in old {
      lines[key] = nil
      bytes -= line.text.utf8.count
    }
    return old.values.sorted { $0.startedAt < $1.startedAt }
  }
}
