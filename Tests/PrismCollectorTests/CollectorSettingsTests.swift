import Foundation
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("A collector's file")
struct CollectorSettingsTests {
  @Test("says everything that flags say, and TLS")
  func read() throws {
    let text = """
      listen: 0.0.0.0:8443
      state: /var/lib/c
      tokenFile: /t
      readerTokenFile: /r
      reader: {listen: "127.0.0.1:9", hosts: [a.example, b.example]}
      retentionDay: 90
      memoryMByte: 16
      keys: [{id: main, file: /k}, {id: old, file: /o}]
      sealKeys: [/s1, /s2]
      tls: {certFile: /c, keyFile: /p, clientCAFile: /a}
      """
    let settings = try CollectorSettings(file: "c.yaml", bytes: Array(text.utf8))
    #expect(settings.listen == "0.0.0.0:8443" && settings.state == "/var/lib/c" && settings.tokenFile == "/t")
    #expect(settings.readerTokenFile == "/r" && settings.readerListen == "127.0.0.1:9")
    #expect(settings.readerHosts == ["a.example", "b.example"])
    #expect(settings.retentionDays == 90 && settings.memoryBytes == 16 << 20)
    #expect(settings.keys.map(\.id) == ["main", "old"] && settings.keys.map(\.file) == ["/k", "/o"])
    #expect(settings.sealKeys == ["/s1", "/s2"])
    #expect(settings.certFile == "/c" && settings.keyFile == "/p" && settings.clientCAFile == "/a")
  }

  @Test("names files relative to the credentials, then to itself")
  func files() throws {
    let folder = TemporaryFolder.make()
    for name in ["credentials", "etc/keys"] {
      try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
    }
    defer { try? FileManager.default.removeItem(atPath: folder) }  // a left folder harms no test
    for name in ["credentials/keys_main.key", "etc/keys/main.key", "etc/keys/cert.pem"] {
      #expect(FileManager.default.createFile(atPath: "\(folder)/\(name)", contents: nil))
    }
    let text = "keys: [{id: main, file: keys/main.key}]\ntls: {certFile: keys/cert.pem, keyFile: nowhere.key}"
    var settings = try CollectorSettings(file: "c.yaml", bytes: Array(text.utf8))
    settings.locateFiles(besides: "\(folder)/etc/c.yaml", credentials: "\(folder)/credentials")
    #expect(settings.keys.map(\.file) == ["\(folder)/credentials/keys_main.key"])
    #expect(settings.certFile == "\(folder)/etc/keys/cert.pem" && settings.keyFile == "nowhere.key")
  }

  @Test(
    "is refused with its file and line, and every fault of it",
    arguments: [
      ("lisn: a", ["c.yaml:1: lisn: "]), ("listen: []", ["c.yaml:1: listen: must be a text"]),
      ("state: /s\nkeys: main", ["c.yaml:2: keys: must be a list"]),
      (
        "keys: [{id: a}]\ntls: {certFile: /c}\nx: 1",
        ["c.yaml:1: keys: ", "c.yaml:3: x: ", "c.yaml:1: tls: certFile and"]
      ),
      (
        "reader: {listen: \"0.0.0.0:81\"}",
        ["c.yaml:1: reader.listen: 0.0.0.0:81 is no loopback address, so it needs readerTokenFile"]
      ),
      ("reader: {hosts: a}", ["c.yaml:1: reader.hosts: must be a list"]),
      ("retentionDay: 0\nmemoryMByte: x", ["c.yaml:1: retentionDay: is 0, must", "c.yaml:2: memoryMByte: is x, must"]),
      ("onLag: drop", ["c.yaml:1: onLag: is drop, must be skip or refuse"]),
      ("- a", ["c.yaml:1: must be a mapping"]), ("a: *b", ["c.yaml:1: "]),
    ])
  func refused(text: String, starts: [String]) {
    #expect {
      try CollectorSettings(file: "c.yaml", bytes: Array(text.utf8))
    } throws: { error in
      guard let lines = (error as? CollectorSettings.Faults)?.lines, lines.count == starts.count else { return false }
      return zip(lines, starts).allSatisfy { $0.hasPrefix($1) }
    }
  }
}
