import PrismProtocol

/// The stack of a coredump as systemd-coredump(8) writes it, with the build ids of the modules. Those are in the field
/// `COREDUMP_PACKAGE_JSON` (systemd.io/COREDUMP_PACKAGE_METADATA), or in lines of the text: `Module shop with build-id 9f86`.
struct CoredumpFrames {
  /// A panic has ten frames and more of its own machinery. All of them leave room in a meta.
  private static let framesMax = 64, framesBytesMax = 6144
  private static let frameBytesMax = 256, modulesMax = 512

  /// Those of the thread that died, which comes first, as the meta has them: an object where the build id is known, else the line.
  let frames: [JSONValue]
  /// The package of the program, `shop 1.2-1`; nil: it is not known.
  let package: String?

  /// - Parameter executable: the path of the program.
  init(_ text: String, packages: String?, executable: String?) {
    let json = packages.flatMap { try? JSONValue(parsing: $0) }?.object ?? []
    var builds: [Substring: String] = [:]
    for member in json.prefix(Self.modulesMax) {
      builds[Self.baseName(member.key[...])] = member.value["buildId"]?.string.flatMap { Self.id($0[...]) }
    }
    let lines = text.split(separator: "\n").map { $0.drop { $0 == " " || $0 == "\t" } }
    for line in lines where line.hasPrefix("Module ") && builds.count < Self.modulesMax {
      let words = line.split(separator: " ")
      guard words.count == 5, words[2] == "with", words[3] == "build-id", let id = Self.id(words[4]) else { continue }
      builds[Self.baseName(words[1])] = id
    }
    let numbered = lines.filter { $0.hasPrefix("#") }
    let next = numbered.dropFirst().firstIndex { $0.hasPrefix("#0 ") } ?? numbered.count
    var bytes = 0
    frames = numbered[..<min(next, Self.framesMax)].map {
      Self.frame($0, builds) ?? .string(String($0.prefix(Self.frameBytesMax)))
    }.prefix { frame in
      bytes += frame.bytes.count
      return bytes <= Self.framesBytesMax
    }
    let own = executable.flatMap { path in json.first { $0.key == path || $0.key == Self.baseName(path[...]) }?.value }
    package = own.flatMap { own in
      own["name"]?.string.map { [$0, own["version"]?.string ?? ""].filter { !$0.isEmpty }.joined(separator: " ") }
    }
  }

  private static func baseName(_ path: Substring) -> Substring {
    path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path
  }

  /// nil: it is no build id.
  private static func id(_ text: Substring) -> String? {
    let isID = (8...64).contains(text.utf8.count) && text.allSatisfy { $0.isASCII && $0.isHexDigit }
    return isID ? text.lowercased() : nil
  }

  /// `#1  0x000055d0 main (shop + 0x2)`; nil: another form, or its build id is not known.
  private static func frame(_ line: Substring, _ builds: [Substring: String]) -> JSONValue? {
    guard line.hasSuffix(")"), let open = line.lastIndex(of: "(") else { return nil }
    let place = line[line.index(after: open)...].dropLast().split(separator: " ")
    guard place.count == 3, place[1] == "+", place[2].hasPrefix("0x"), let id = builds[baseName(place[0])] else {
      return nil
    }
    // The number, the address, and the name, which may have spaces.
    let words = line[..<open].split(separator: " ", maxSplits: 2)
    guard words.count == 3, words[1].hasPrefix("0x") else { return nil }
    let name = words[2].reversed().drop { $0 == " " }.reversed()
    var members: [JSONValue.Member] = []
    if String(name) != "n/a" { members.append(.init("function", .string(String(String(name).prefix(frameBytesMax))))) }
    members += [
      .init("module", .string(String(baseName(place[0])))), .init("buildId", .string(id)),
      .init("offset", .string(String(place[2]))),
    ]
    return .object(members)
  }
}
