import CLinux
import Glibc

/// What the process holds in memory.
public enum ResidentMemory {
  /// Gives back what only the start, or a load that is over, needed: free memory of the heap, and pages of code.
  ///
  /// Code is clean pages of files, of which an idle daemon uses a tenth: what is needed again comes from the page cache, a
  /// fault of a microsecond for 64 KiB. A few hundred system calls.
  public static func giveBack() {
    malloc_trim(0)
    prism_forget_code()
  }
}
