import Glibc
import Testing

@testable import PrismBase

@Suite("The state folder's rights")
struct StateFolderTests {
  /// A folder of the test's own, gone with the value.
  private final class Place: Sendable {
    let path: String

    init() {
      var template = Array("/tmp/prism-rights-XXXXXX".utf8CString)
      path = String(cString: mkdtemp(&template))
    }

    deinit { rm(path) }

    private func rm(_ path: String) {
      if let folder = opendir(path) {
        while let entry = readdir(folder) {
          let name = withUnsafeBytes(of: &entry.pointee.d_name) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
          }
          if name != "." && name != ".." { rm(path + "/" + name) }
        }
        closedir(folder)
      }
      remove(path)
    }

    func mode(_ name: String) -> mode_t {
      var facts = stat()
      return stat(path + "/" + name, &facts) == 0 ? facts.st_mode & 0o7777 : 0
    }

    func make(_ name: String, mode: mode_t) {
      close(open(path + "/" + name, O_CREAT | O_WRONLY, 0o600))
      chmod(path + "/" + name, mode)
    }
  }

  @Test("is made with the folders above it, for its user alone, under any umask")
  func made() throws {
    let place = Place()
    for mask in [mode_t(0o022), 0o077, 0] {
      umask(mask)
      try StateFolder.prepare(place.path + "/\(mask)/b//state/")
      #expect(place.mode("\(mask)") == 0o755 && place.mode("\(mask)/b") == 0o755)
      #expect(place.mode("\(mask)/b/state") == 0o700)
      try StateFolder.prepare(place.path + "/\(mask)/b/state")
    }
    close(open(place.path + "/file", O_CREAT | O_WRONLY, 0o666))
    #expect(place.mode("file") == 0o600, "what is made from now on is its user's alone")
  }

  @Test(
    "a folder that is open to others is refused with the remedy", arguments: [0o750, 0o711, 0o755, 0o1777] as [mode_t])
  func openFolder(mode: mode_t) throws {
    let place = Place()
    chmod(place.path, mode)
    let fault = #expect(throws: StateFolder.Fault.self) { try StateFolder.prepare(place.path) }
    #expect(fault?.isMode == true && fault?.description.hasSuffix("run chmod -R go= \(place.path)") == true)
    chmod(place.path, 0o700)
    try StateFolder.prepare(place.path)
  }

  @Test("a file that is open to others is refused by name; folders, sockets and links to nothing are not looked at")
  func openFiles() throws {
    let place = Place()
    place.make("prism.db", mode: 0o600)
    mkdir(place.path + "/lost+found", 0o755)
    mkfifo(place.path + "/pipe", 0o666)
    symlink("nowhere", place.path + "/dangling")
    try StateFolder.prepare(place.path)
    for mode in [0o640, 0o604, 0o660, 0o601] as [mode_t] {
      place.make("prism.db-wal", mode: mode)
      let fault = #expect(throws: StateFolder.Fault.self) { try StateFolder.prepare(place.path) }
      #expect(
        fault?.description == "\(place.path)/prism.db-wal has mode 0\(String(mode, radix: 8)), must be 0600: "
          + "state is for this program's user alone; run chmod -R go= \(place.path)")
    }
    place.make("prism.db-wal", mode: 0o600)
    try StateFolder.prepare(place.path)
  }

  @Test("what can't be made or is no folder is said", arguments: ["/proc/prism-state", "/dev/null", "/dev/null/state"])
  func impossible(path: String) {
    let fault = #expect(throws: StateFolder.Fault.self) { try StateFolder.prepare(path) }
    #expect(fault?.isMode == false && fault?.description.hasPrefix(path) == true, "\(fault?.description ?? "")")
  }
}
