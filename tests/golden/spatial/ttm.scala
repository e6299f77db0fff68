import spatial.dsl._

@spatial class A_kernel(bp: scala.Int = 12, ip: scala.Int = 16, sp: scala.Int = 1) extends SpatialTest {
  type T = Int
  def main(args: Array[String]): Unit = {
    val B_entries0 = ArgIn[T]
    setArg(B_entries0, args(0).to[T])
    val B_entries1 = ArgIn[T]
    setArg(B_entries1, args(1).to[T])
    val k_size = ArgIn[T]
    setArg(k_size, args(2).to[T])
    val l_size = ArgIn[T]
    setArg(l_size, args(3).to[T])
    val B_entries2 = ArgIn[T]
    setArg(B_entries2, args(4).to[T])
    val B_pos0_host = DRAM[T](2)
    setMem(B_pos0_host, loadCSV1D[T]("B_pos0_host.csv"))
    val B_pos1_host = DRAM[T](B_entries0.value + 1)
    setMem(B_pos1_host, loadCSV1D[T]("B_pos1_host.csv"))
    val B_pos2_host = DRAM[T](B_entries1.value + 1)
    setMem(B_pos2_host, loadCSV1D[T]("B_pos2_host.csv"))
    val C_vals_host = DRAM[T](k_size.value * l_size.value)
    setMem(C_vals_host, loadCSV1D[T]("C_vals_host.csv"))
    val B_crd2_host = DRAM[T](B_entries2.value)
    setMem(B_crd2_host, loadCSV1D[T]("B_crd2_host.csv"))
    val B_vals_host = DRAM[T](B_entries2.value)
    setMem(B_vals_host, loadCSV1D[T]("B_vals_host.csv"))
    val A_vals_host = DRAM[T](B_entries1.value * k_size.value)
    setMem(A_vals_host, Array.fill[T](B_entries1.value * k_size.value)(0.to[T]))
    Accel {
      val C_vals_sparse = SparseDRAM[T](bp)(k_size.value * l_size.value, true)
      C_vals_sparse.alias = C_vals_host
      val B_pos0 = SRAM[T](2)
      B_pos0 load B_pos0_host(0::2 par ip)
      val B_0_begin = B_pos0(0)
      val B_0_end = B_pos0(1)
      val B_0_length = B_0_end - B_0_begin
      val B_pos1 = SRAM[T](65536)
      B_pos1 load B_pos1_host(B_0_begin::(B_0_begin + (B_0_length + 1)) par ip)
      Foreach(B_0_length by 1 par bp) { i_entry =>
        val B_1_begin = B_pos1(i_entry)
        val B_1_end = B_pos1(i_entry + 1)
        val B_1_length = B_1_end - B_1_begin
        val B_pos2 = SRAM[T](65536)
        B_pos2 load B_pos2_host(B_1_begin::(B_1_begin + (B_1_length + 1)) par ip)
        val A_vals = FIFO[T](16).retiming
        Foreach(B_1_length by 1 par 1) { j_entry =>
          val B_2_begin = B_pos2(j_entry)
          val B_2_end = B_pos2(j_entry + 1)
          val B_2_length = B_2_end - B_2_begin
          Foreach(k_size.value by 1 par 1) { k =>
            val B_crd2 = FIFO[T](16).retiming
            B_crd2_host stream_load_vec(B_2_begin, B_2_length, B_crd2)
            val B_vals = FIFO[T](16).retiming
            B_vals_host stream_load_vec(B_2_begin, B_2_length, B_vals)
            val total = Reg[T](0.to[T])
            Reduce(total)(B_2_length by 1 par 16) { l_entry =>
              val l = B_crd2.deq
              val B_value = B_vals.deq
              val C_value = C_vals_sparse.barrierRead(k * l_size.value + l, Seq())
              B_value * C_value
            } { _ + _ }
            A_vals.enq(total.value)
          }
        }
        A_vals_host stream_store_vec(B_1_begin * k_size.value, A_vals, B_1_length * k_size.value)
      }
    }
    writeCSV1D(getMem(A_vals_host), "A_vals_host.csv")
  }
}
