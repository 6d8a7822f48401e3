/// Memory, load, file systems and temperatures at one moment. Pure: the text comes from `HostFiles`.
struct HostGauges: Sendable, Equatable {
  struct FileSystem: Sendable, Equatable {
    var path: String
    var bytes: UInt64
    var freeBytes: UInt64
    var freeInodes: UInt64
  }

  struct Temperature: Sendable, Equatable {
    var name: String
    var celsius: Double
  }

  /// Over 1, 5 and 15 minutes.
  var load: [Double] = []
  var processors = 0
  /// In KiB, by the names of /proc/meminfo.
  var memory: [String: UInt64] = [:]
  var fileSystems: [FileSystem] = []
  var temperatures: [Temperature] = []

  mutating func takeLoad(_ text: String) { load = text.split(separator: " ").prefix(3).compactMap { Double($0) } }

  mutating func takeMemory(_ text: String) {
    let names: Set<Substring> = ["MemTotal", "MemAvailable", "SwapTotal", "SwapFree"]
    for line in text.split(separator: "\n") {
      let words = line.split(whereSeparator: { $0 == " " || $0 == ":" })
      if words.count >= 2, names.contains(words[0]) { memory[String(words[0])] = UInt64(words[1]) }
    }
  }

  /// Where file systems of local disks are mounted, each disk once, by /proc/self/mounts.
  static func mountPoints(_ text: String) -> [String] {
    var seen: Set<Substring> = []
    return text.split(separator: "\n").compactMap { line -> String? in
      let words = line.split(separator: " ")
      // A file system of a user's own program may never answer.
      guard words.count > 2, words[0].hasPrefix("/dev/"), !words[0].hasPrefix("/dev/loop"), !words[2].hasPrefix("fuse"),
        seen.insert(words[0]).inserted
      else { return nil }
      // A space in a path is written as an octal number (fstab(5)).
      return [("\\040", " "), ("\\011", "\t"), ("\\134", "\\")].reduce(String(words[1])) {
        $0.replacing($1.0, with: $1.1)
      }
    }
  }
}
