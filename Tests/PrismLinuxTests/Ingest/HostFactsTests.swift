import Foundation
import PrismAdmission
import PrismLinux
import PrismTestSupport
import Testing

@Suite("The host's own facts")
struct HostFactsTests {
  private func facts(_ files: [String: String]) throws -> HostFacts {
    let folder = TemporaryFolder()
    let root = URL(filePath: folder.path)
    for (path, text) in files {
      let file = root.appending(path: path)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: file)
    }
    return HostFacts.read(deviceID: "d", root: root.path)
  }

  @Test("vendor and product come from DMI")
  func dmi() throws {
    let facts = try facts([
      "sys/class/dmi/id/sys_vendor": "ACME Inc.\n", "sys/class/dmi/id/product_name": "Box 7 \n",
      "etc/os-release": "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
    ])
    #expect(facts.brand == "ACME Inc." && facts.model == "Box 7" && facts.deviceID == "d")
    #expect(facts.systemVersion.hasPrefix("Debian GNU/Linux 12 (bookworm), Linux "))
  }

  @Test("or from the device tree")
  func deviceTree() throws {
    let facts = try facts([
      "proc/device-tree/model": "Raspberry Pi 4 Model B\0",
      "proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0",
    ])
    #expect(facts.brand == "raspberrypi" && facts.model == "Raspberry Pi 4 Model B")
  }

  @Test("or are unknown")
  func unknown() throws {
    let facts = try facts([:])
    #expect(facts.brand == nil && facts.model == nil && facts.systemVersion.hasPrefix("Linux "))
  }
}
